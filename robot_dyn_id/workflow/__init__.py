# SPDX-License-Identifier: Apache-2.0
"""Complete tasks from files to files, shared by the front door, the commands and the nodes."""
