# SPDX-License-Identifier: Apache-2.0
"""Files of settings and results: typed reading and writing of YAML."""
