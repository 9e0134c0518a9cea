# SPDX-License-Identifier: Apache-2.0
"""Stages of an identification, each a value that holds the stage before it and the findings of its own."""
