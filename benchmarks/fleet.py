# SPDX-License-Identifier: Apache-2.0
"""A fleet of simulated robots: which are named, what little data borrow, whether the parts agree, and the cost.

`python benchmarks/fleet.py [detect|rates|borrow|run]...`, all by default; rows for fleet.md are printed.
"""

import os
import signal
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

import numpy as np
from support.fleets import NOISE_NM, RATE_HZ, SimulatedFleet

from robot_dyn_id.dynamics.problem import UnfilteredProblem
from robot_dyn_id.dynamics.regressor import Motion
from robot_dyn_id.errors import RobotDynIdError
from robot_dyn_id.estimators import WeightedLeastSquares
from robot_dyn_id.estimators.factors import Factors
from robot_dyn_id.estimators.row_statistics import RowStatistics
from robot_dyn_id.estimators.weighting import degrees_of_freedom, solve_reweighted
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.files.manifest import read_manifest
from robot_dyn_id.fleet.differences import compare_robots
from robot_dyn_id.fleet.drift import compare_recordings, estimate_overdispersion
from robot_dyn_id.fleet.evidence import Evidence
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.recordings import open_recording
from robot_dyn_id.signals.trials import FilteredTrials
from robot_dyn_id.workflow.fleet import identify_fleet
from robot_dyn_id.workflow.identification import identify
from robot_dyn_id.workflow.scheduler import InProcess, OnDask

ROBOTS, RECORDINGS, SEEDS = 200, 3, 20
PAYLOAD, WORN_ROBOTS = (10, 60, 110), (35, 160)
BROKEN = ((5, 0), (40, 2), (77, 1), (120, 0), (199, 2))
CUTOFF_HZ = 5.0
SOUND, ODD, RATE_SECONDS = 2000, 250, 15.0
RATES = (
    *((robots, 0, "") for robots in (8, 20, 40, 70, 100)),
    *((robots, odd, kind) for robots, odd in ((12, 2), (20, 2), (30, 3), (73, 3)) for kind in ("worn", "loaded")),
    (200, 5, "worn"),
)
"""Robots, robots that differ, and how."""


def detect():
    """Robots that are named in 20 fleets, as rows at twice the cut-off with white noise in that band."""
    rate = 2.0 * CUTOFF_HZ
    sigma = NOISE_NM * np.sqrt(rate / RATE_HZ)
    arm = SimulatedFleet(1).arm
    t = np.arange(int(SimulatedFleet(1).duration * rate)) / rate
    motions = [Motion(*draw_random_fourier(arm.model, 1 + number).evaluate(t)[:3]) for number in range(RECORDINGS)]
    rows = [MotionRows(arm, motion) for motion in motions]
    odd = {*PAYLOAD, *WORN_ROBOTS}
    exact = missed = families = 0
    for seed in range(SEEDS):
        fleet = SimulatedFleet(ROBOTS, seed, PAYLOAD, WORN_ROBOTS, arm=arm)
        rng = np.random.default_rng(1000 + seed)
        recordings = [[one.draw(fleet.parameters(robot), sigma, rng) for one in rows] for robot in range(ROBOTS)]
        dispersion = estimate_overdispersion([compare_recordings(statistics) for statistics in recordings])
        evidence = Evidence.from_statistics([RowStatistics.merged(one) for one in recordings], dispersion)
        comparison = compare_robots(evidence, fleet.variation(evidence.scales))
        named = set(np.flatnonzero(comparison.differs).tolist())
        exact += named == odd
        missed += bool(odd - named)
        families += bool(named - odd)
        least = np.min([comparison.adjusted[robot] for robot in range(ROBOTS) if robot not in odd])
        most = np.max([comparison.adjusted[robot] for robot in odd])
        print(f"seed {seed}: {sorted(named)}, odd {most:.1e}, sound {least:.1e}", file=sys.stderr, flush=True)
    print(f"| the five robots and no other named | >= 19 of 20 | {exact} of {SEEDS} |")
    print(f"| seeds with a robot missed; with a sound one named | | {missed}; {families} |")


def rates():
    """False alarms and missed robots by fleet size: fleets are drawn from one pool of simulated robots."""
    rate = 2.0 * CUTOFF_HZ
    sigma = NOISE_NM * np.sqrt(rate / RATE_HZ)
    arm = SimulatedFleet(1).arm
    t = np.arange(int(SimulatedFleet(1).duration * rate)) / rate
    rows = [MotionRows(arm, Motion(*draw_random_fourier(arm.model, 1 + n).evaluate(t)[:3])) for n in range(RECORDINGS)]
    loaded, worn = range(SOUND, SOUND + ODD), range(SOUND + ODD, SOUND + 2 * ODD)
    pool = SimulatedFleet(SOUND + 2 * ODD, 77, tuple(loaded), tuple(worn), arm=arm)
    rng = np.random.default_rng(1077)
    drawn = [
        RowStatistics.merged([one.draw(pool.parameters(robot), sigma, rng) for one in rows])
        for robot in range(pool.robots)
    ]
    evidence = Evidence.from_statistics(drawn)
    spread = pool.variation(evidence.scales)
    for robots, odd, kind in RATES:
        false = missed = fleets = 0
        rng = np.random.default_rng((9, robots, odd))
        begin = time.process_time()
        while time.process_time() - begin < RATE_SECONDS:
            chosen = rng.choice(SOUND, robots, replace=False)
            chosen[:odd] = (worn if kind == "worn" else loaded).start + rng.choice(ODD, odd, replace=False)
            arrays = {name: getattr(evidence, name)[chosen] for name in ("designs", "targets", "noise", "ranks")}
            differs = compare_robots(replace(evidence, **arrays), spread).differs
            fleets += 1
            false += bool(differs[odd:].any())
            missed += int(np.count_nonzero(~differs[:odd]))
        print(f"| {robots} | {odd} {kind} | {false} of {fleets} | {missed} of {odd * fleets} |", flush=True)


class MotionRows:
    """Orthogonal factors of the rows of one motion: the statistics of any torque along it follow at once."""

    def __init__(self, arm, motion):
        problem = UnfilteredProblem.from_samples(arm.regressor, arm.base.independent, motion, np.ones(motion.q.shape))
        self.regressor, self.motion, self.supports = arm.regressor, motion, problem.supports
        self.factors = [np.linalg.qr(tile.block[:-1].T.copy()) for tile in problem.tiles()]
        self.parameters = len(problem.names)

    def draw(self, values, sigma, rng):
        torque = self.regressor.torque(self.motion, values, np.arange(len(values)))
        torque = torque + sigma * rng.normal(size=torque.shape)
        counts = np.full(len(torque), torque.shape[1])
        left = degrees_of_freedom(self.parameters, counts)
        triangles, scores, noise = [], [], []
        for (q, r), tau, rest in zip(self.factors, torque, left, strict=True):
            inside = q.T @ tau
            outside = max(tau @ tau - inside @ inside, 0.0)
            triangle = np.zeros((len(r) + 1, len(r) + 1))
            triangle[:-1, :-1], triangle[:-1, -1], triangle[-1, -1] = r, inside, np.sqrt(outside)
            triangles.append(triangle)
            scores.append(outside / rest * (r.T @ r))
            noise.append(outside)
        factors = Factors(self.parameters, self.supports, tuple(triangles), counts)
        return RowStatistics(factors, tuple(scores), np.array(noise))


def borrow():
    """20 robots with 2 s each: error of the torque on another motion, against their own consistent fit."""
    fleet = SimulatedFleet(20, 7, duration=2.0 + 0.0)
    regressor = fleet.arm.regressor
    t = np.arange(2000) / 100.0
    motion = Motion(*draw_random_fourier(fleet.arm.model, 999).evaluate(t)[:3])
    truth = [regressor.torque(motion, fleet.parameters(r), np.arange(len(regressor.names))) for r in range(20)]
    own = []
    for robot in range(20):
        try:
            result = identify(fleet.arm.model, fleet.record(robot, 0, seed=100 + robot), Settings())
            model = result.model
            predicted = model.regressor.torque(motion, model.values, model.columns)
            own.append(np.linalg.norm(predicted - truth[robot]) / np.linalg.norm(truth[robot]))
        except RobotDynIdError as error:
            own.append(np.nan)
            print(f"robot {robot}: refused, {error}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        path = fleet.write(Path(folder) / "data", 1, motions=lambda robot, number: 100 + robot)
        result = identify_fleet(read_manifest(path), InProcess(), Path(folder) / "store")
    together = []
    for robot, one in enumerate(result.configurations[0].robots):
        columns = one.parameters.base.independent.astype(int)
        predicted = regressor.torque(motion, one.parameters.estimate.values, columns)
        together.append(np.linalg.norm(predicted - truth[robot]) / np.linalg.norm(truth[robot]))
    pooled = result.configurations[0].pooled
    alone = [
        np.linalg.norm(regressor.torque(motion, pooled.values, columns) - one) / np.linalg.norm(one) for one in truth
    ]
    refused = int(np.isnan(own).sum())
    ratio = np.median(together) / np.nanmedian(own)
    print(f"| 20 robots with 2 s each: median torque error on another motion | | {np.median(together):.2%} |")
    print(
        f"| of their own consistent fits ({refused} refused); of the pooled set | | "
        f"{np.nanmedian(own):.2%}; {np.median(alone):.2%} |"
    )
    print(f"| ratio | <= 1/3 | {ratio:.2f} |")


def run():
    """A whole fleet from files on local Dask workers of which one is killed, against one process without Dask."""
    from distributed import Client, LocalCluster

    fleet = SimulatedFleet(ROBOTS, 3, PAYLOAD, WORN_ROBOTS)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        path = fleet.write(root / "data", RECORDINGS, BROKEN, {"config": "config.yaml"})
        (root / "data" / "config.yaml").write_text(f"cutoff: {CUTOFF_HZ}\nvelocity: derivative\n")
        manifest = read_manifest(path)
        killed = []
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None, silence_logs=50
        )
        with cluster, Client(cluster) as client:
            pids = list(client.run(os.getpid).values())

            def kill():
                while len(list((root / "store").glob("*.npz"))) < 200:
                    time.sleep(0.2)
                os.kill(pids[0], signal.SIGKILL)
                killed.append(pids[0])

            threading.Thread(target=kill, daemon=True).start()
            begin = time.monotonic()
            result = identify_fleet(manifest, OnDask(client), root / "store", lambda line: print(line, file=sys.stderr))
            seconds = time.monotonic() - begin
        group = result.configurations[0]
        odd = {fleet.serials[robot] for robot in (*PAYLOAD, *WORN_ROBOTS)}
        named = {one.robot for one in result.differing}
        print(
            f"| one fleet from 600 files on 2 Dask workers, one killed ({len(killed)}): named | the five | "
            f"{'the five' if named == odd else sorted(named)} |"
        )
        for one in result.differing:
            print(f"robot {one.robot}: {', '.join(d.name for d in one.differences)}", file=sys.stderr)
        print(f"| broken recordings left out | 5 | {len(result.left_out)} |")
        print(f"| wall time of that run [s] (2 shared cores) | | {seconds:.0f} |")
        used = [e for e in manifest.recordings if e.robot not in named]
        left = {one.entry.recording for one in result.left_out}
        recordings = [open_recording(e.recording) for e in used if e.recording not in left]
        settings = Settings(
            estimator=WeightedLeastSquares(),
            cutoff=CUTOFF_HZ,
            velocity="derivative",
            sample_rate=result.signals["sample_rate"],
        )
        trials = FilteredTrials.from_recordings(recordings, fleet.arm.joints, {}, settings.signals).decimated()
        factors = Factors.from_problem(trials.problem(fleet.arm.regressor, fleet.arm.base.independent))
        single = solve_reweighted(factors)[1].values
        difference = np.abs(group.pooled.values - single).max() / np.abs(single).max()
        print(
            "| pooled parameters against one problem of all rows, largest relative difference | <= 1e-9 | "
            f"{difference:.1e} |"
        )
        costs(result)


def costs(result):
    """Measured sizes and times, and what follows from them for 10,000 robots on 100 workers."""
    robots = result.configurations[0].robots
    size, mapping = float(np.median(result.factor_bytes)), float(np.median(result.map_seconds))
    reducing = float(np.median([one.reduce_seconds for one in robots]))
    rows = [one.factor.statistics for one in robots[:8]]
    begin = time.process_time()
    for _ in range(20):
        RowStatistics.merged(rows)
    merging = (time.process_time() - begin) / 20
    print(
        f"| factor of one recording (3 axes, {len(robots[0].parameters.base.names)} parameters) [kB] | tens | "
        f"{size / 1e3:.1f} |"
    )
    print(
        "| map of one recording of 10 s, reduction of a robot, node of 8 [CPU s] | | "
        f"{mapping:.3f}; {reducing:.3f}; {merging:.4f} |"
    )


if __name__ == "__main__":
    for name in sys.argv[1:] or ("detect", "rates", "borrow", "run"):
        {"detect": detect, "rates": rates, "borrow": borrow, "run": run}[name]()
