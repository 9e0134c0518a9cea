# SPDX-License-Identifier: Apache-2.0
"""Payloads, wrenches at the base or at a tool, and drive gains."""
