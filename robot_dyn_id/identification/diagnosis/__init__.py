# SPDX-License-Identifier: Apache-2.0
"""Faults of recordings and of efforts: each module examines one kind, and defines what it finds."""
