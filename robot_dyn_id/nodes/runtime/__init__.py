# SPDX-License-Identifier: Apache-2.0
"""Base of the nodes: parameters, diagnostics, start and end."""
