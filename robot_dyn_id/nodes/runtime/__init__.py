# SPDX-License-Identifier: Apache-2.0
"""What every node is built on: parameters, diagnostics, start and end."""
