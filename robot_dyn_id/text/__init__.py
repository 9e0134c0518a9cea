# SPDX-License-Identifier: Apache-2.0
"""Text files: bounded reading, safe YAML, atomic writing."""
