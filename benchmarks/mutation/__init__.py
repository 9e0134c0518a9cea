# SPDX-License-Identifier: Apache-2.0
"""The mutation suite: does the plain command name what is wrong with a recording, and is it silent where nothing is?

`python -m mutation` in `benchmarks/` applies faults of three strengths to simulated recordings of eight arms. The
recordings come from physics that the identified model does not contain exactly (`clean`), the faults and the codes that
must name them are in `catalog`.
"""
