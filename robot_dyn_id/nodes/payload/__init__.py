# SPDX-License-Identifier: Apache-2.0
"""Parts of the node `payload_identifier`."""
