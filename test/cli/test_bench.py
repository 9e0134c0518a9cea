# SPDX-License-Identifier: Apache-2.0
"""`robot-dyn-id bench`."""

import json


def test_the_whole_command_is_measured(cli):
    code, out, err = cli("bench", "command", "--samples", "1200", "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["goals"] == []
    (seconds,) = answer["command"]["seconds"].items()
    assert seconds[0] == "1200" and seconds[1] > 0.1
    assert answer["command"]["at_most"] == 10.0
    assert err.count("identify, 1200 samples") == 2  # the first one may compile
