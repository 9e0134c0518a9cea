# SPDX-License-Identifier: Apache-2.0
"""Choice of a model: what is in the data is found, and what is not is not taken."""

from dataclasses import replace

import numpy as np
import pytest
from support.simulated import ARM, Simulated

from robot_dyn_id import cores
from robot_dyn_id.dynamics.regressor import Motion, Regressor
from robot_dyn_id.dynamics.terms import (
    Coulomb,
    Coupling,
    Dahl,
    LoadCoulomb,
    Offset,
    PositionPeriodic,
    RotorInertia,
    Spring,
    Viscous,
)
from robot_dyn_id.estimators import Consistent
from robot_dyn_id.excitation import draw_random_fourier
from robot_dyn_id.identification.pipeline import identify
from robot_dyn_id.identification.selection import choice
from robot_dyn_id.identification.selection.block_grams import BlockGrams
from robot_dyn_id.identification.selection.choice import choose_model
from robot_dyn_id.identification.selection.options import Options
from robot_dyn_id.identification.settings import Settings
from robot_dyn_id.model.robot import STANDARD_GRAVITY
from robot_dyn_id.signals.trials import FilteredTrials, SignalSettings
from robot_dyn_id.simulation.sensors import Sensors, sample_times, simulate_recording

SIMPLE = (Viscous(), Coulomb(0.02), Offset())
NOISE_NM = 0.05
FIXED_FILTER = Options(motion_filter=False, velocity=False, without_blocks=False)


def record(robot, seeds=(1, 2), **options):
    recordings = [robot.record(seed, duration=25.0, noise=NOISE_NM, **options) for seed in seeds]
    return FilteredTrials.from_recordings(recordings, robot.joints, {}, SignalSettings(cutoff=8.0))


def chosen(selection, step):
    return [row.name for row in selection.tried if row.step == step and row.chosen]


def term_names(selection):
    return {term.name for _, term in selection.regressor.terms}


@pytest.fixture(scope="module")
def simple():
    robot = Simulated(ARM, SIMPLE)
    return robot, choose_model(record(robot), robot.model, replace(FIXED_FILTER, without_blocks=True))


class TestTerms:
    """Families of terms."""

    @pytest.mark.slow
    def test_no_coupling_and_no_tilt_is_taken_of_a_simple_robot(self, simple):
        _, selection = simple
        assert not chosen(selection, "coupling")
        assert not chosen(selection, "base_tilt")
        assert selection.findings == ()

    @pytest.mark.slow
    def test_presliding_friction_is_found(self):
        robot = Simulated(ARM, (Viscous(), Offset(), Dahl()))
        selection = choose_model(record(robot), robot.model, FIXED_FILTER)
        assert "presliding" in chosen(selection, "terms")
        assert "dahl" in term_names(selection)
        row = next(row for row in selection.tried if row.name == "presliding")
        assert row.gain > 3.0 * row.deviation

    @pytest.mark.slow
    def test_load_dependent_friction_is_found_without_masses_in_the_urdf(self):
        robot = Simulated(ARM, (*SIMPLE, LoadCoulomb()))
        massless = replace(robot.model, inertial_parameters=np.zeros_like(robot.model.inertial_parameters))
        selection = choose_model(record(robot), massless, FIXED_FILTER)
        assert "load_dependent" in chosen(selection, "terms")
        assert any(selection.regressor.load_parameters)

    def test_terms_that_are_given_are_kept_and_nothing_else_is_tried(self):
        robot = Simulated(ARM, SIMPLE)
        selection = choose_model(record(robot), robot.model, replace(FIXED_FILTER, terms=SIMPLE, base_tilt=False))
        assert {row.step for row in selection.tried} == {"prior_size", "prior_strength"}
        assert term_names(selection) <= {"viscous", "coulomb", "offset"}


class TestCouplings:
    """Couplings of the last joints."""

    @pytest.mark.slow
    def test_a_coupled_wrist_is_found(self):
        wrist = Coupling("motor", (("elbow", 1.0), ("wrist", 1.0)), (RotorInertia(), Viscous(), Coulomb(0.02)))
        robot = Simulated(ARM, SIMPLE, (wrist,))
        selection = choose_model(record(robot), robot.model, FIXED_FILTER)
        assert chosen(selection, "coupling")[0] == "elbow_plus_wrist"

    @pytest.mark.slow
    def test_joints_that_move_in_proportion_are_not_coupled(self):
        """The coupling could take over the friction of both, with any sign."""
        wrist = Coupling("motor", (("elbow", 1.0), ("wrist", 1.0)), (RotorInertia(), Viscous(), Coulomb(0.02)))
        robot = Simulated(ARM, SIMPLE, (wrist,))
        recordings = []
        for seed in (1, 2):
            motion = draw_random_fourier(robot.model, seed)
            motion.coefficients[2] = -motion.coefficients[1]
            sensors = Sensors(np.full(3, NOISE_NM), 1e-6, 1e-3)
            t = sample_times(25.0, 100.0)
            recordings.append(simulate_recording(robot.regressor, robot.parameters, motion, t, sensors, seed))
        trials = FilteredTrials.from_recordings(recordings, robot.joints, {}, SignalSettings(cutoff=8.0))
        selection = choose_model(trials, robot.model, FIXED_FILTER)
        assert "elbow_plus_wrist" not in {row.name for row in selection.tried}


class TestPositions:
    """Torques that depend on the position of one joint."""

    @pytest.mark.slow
    def test_a_spring_is_found_on_the_joint_that_has_it_alone(self):
        robot = Simulated(ARM, (*SIMPLE, Spring(0.3)))
        for joint in (1, 3):
            robot.parameters[robot.regressor.names.index(f"ks{joint}")] = 0.0
        selection = choose_model(record(robot), robot.model, FIXED_FILTER)
        assert chosen(selection, "position") == ["spring of elbow"]
        placed = [coordinate.name for coordinate, term in selection.regressor.terms if term.name == "spring"]
        assert placed == ["elbow"]

    @pytest.mark.slow
    def test_what_repeats_with_every_turn_is_found(self):
        robot = Simulated(ARM, (*SIMPLE, PositionPeriodic()))
        selection = choose_model(record(robot), robot.model, FIXED_FILTER)
        assert "position periodic of wrist" in chosen(selection, "position")

    def test_nothing_is_taken_of_a_robot_without(self, simple):
        _, selection = simple
        assert len([row for row in selection.tried if row.step == "position"]) == 6
        assert not chosen(selection, "position")


class TestTilt:
    """A small tilt of the base."""

    @pytest.mark.slow
    @pytest.mark.parametrize("degrees", [1.5, 4.0])
    def test_a_tilt_is_found_and_compensated(self, degrees):
        angle = np.radians(degrees)
        true = 9.81 * np.array([np.sin(angle), 0.0, -np.cos(angle)])
        robot = Simulated(ARM, SIMPLE, gravity=tuple(true))
        upright = replace(robot.model, gravity=np.array(STANDARD_GRAVITY))
        selection = choose_model(record(robot), upright, FIXED_FILTER)
        assert [finding.code for finding in selection.findings] == ["base_tilted"]
        cosine = selection.regressor.model.gravity @ true / 9.81**2
        assert np.degrees(np.arccos(min(1.0, cosine))) < 0.1 * degrees

    @pytest.mark.slow
    def test_a_tilt_is_not_estimated_where_gravity_is_given(self):
        robot = Simulated(ARM, SIMPLE, gravity=(1.0, 0.0, -9.76))
        upright = replace(robot.model, gravity=np.array(STANDARD_GRAVITY))
        selection = choose_model(record(robot), upright, replace(FIXED_FILTER, base_tilt=False))
        assert selection.regressor.model.gravity.tolist() == list(STANDARD_GRAVITY)


class TestFilter:
    """Motion filter and source of velocities."""

    def test_noisy_positions_have_a_lower_motion_filter_or_the_recorded_velocity(self):
        robot = Simulated(ARM, SIMPLE)
        trials = record(robot, seeds=(1,), velocity=1e-4)
        rng = np.random.default_rng(0)
        recording = trials.recordings[0]
        noisy = replace(recording.samples, q=recording.samples.q + 5e-4 * rng.normal(size=recording.samples.q.shape))
        trials = FilteredTrials.from_recordings(
            [replace(recording, samples=noisy)], robot.joints, {}, SignalSettings(cutoff=8.0, velocity="derivative")
        )
        options = replace(FIXED_FILTER, motion_filter=True, velocity=True, terms=SIMPLE, base_tilt=False)
        plan = choose_model(trials, robot.model, options).trials.plan
        assert plan.recorded_velocity or plan.motion_pass.cutoff < plan.low_pass.cutoff
        assert plan.low_pass.cutoff == 8.0

    @pytest.mark.slow
    def test_the_filter_of_a_long_recording_is_chosen_on_an_excerpt(self, monkeypatch):
        """Terms are compared on all data, whatever the excerpt."""
        robot = Simulated(ARM, SIMPLE)
        recording = robot.record(1, duration=250.0, noise=NOISE_NM)
        trials = FilteredTrials.from_recordings([recording], robot.joints, {}, SignalSettings(cutoff=8.0))
        options = replace(FIXED_FILTER, motion_filter=True, terms=SIMPLE, base_tilt=False)
        whole = choose_model(trials, robot.model, options)
        monkeypatch.setattr(choice, "COMPARED_SAMPLES", 6000)
        part = choose_model(trials, robot.model, options)
        assert part.trials.plan == whole.trials.plan
        compared = [[row for row in one.tried if row.step == "motion_filter"] for one in (part, whole)]
        assert [row.name for row in compared[0]] == [row.name for row in compared[1]]
        assert [row.loss for row in compared[0]] != [row.loss for row in compared[1]]
        assert part.weights.tolist() == whole.weights.tolist() and part.strength == whole.strength


class TestRepetition:
    """The choice without each block."""

    def test_there_is_a_model_without_each_block_that_is_close_to_the_one_of_all_data(self, simple):
        robot, selection = simple
        assert [model.block for model in selection.block_models] == list(range(selection.blocks.count))
        motion = robot.record(7, duration=5.0).samples
        states = selection.wide.with_states(Motion(motion.q.T, motion.dq.T, np.zeros_like(motion.q.T)), 0.01)
        torques = [selection.wide.torque(states, one.values, one.columns) for one in selection.block_models]
        spread = np.std(torques, axis=0)
        assert 0.0 < np.sqrt(np.mean(spread**2)) < NOISE_NM

    @pytest.mark.slow
    def test_the_choice_is_reproducible_to_the_last_bit_on_one_core(self, simple, monkeypatch):
        robot, selection = simple
        monkeypatch.setattr(cores, "count_workers", lambda: 1)
        again = choose_model(record(robot), robot.model, replace(FIXED_FILTER, without_blocks=True))
        assert again.strength == selection.strength
        assert again.weights.tolist() == selection.weights.tolist()
        assert [row.loss for row in again.tried] == [row.loss for row in selection.tried]
        for one, other in zip(again.block_models, selection.block_models, strict=True):
            assert one.values.tolist() == other.values.tolist()


class TestWhatIsGiven:
    """Choices that the user has made."""

    def test_terms_that_are_given_stay_though_their_parameters_are_zero(self):
        robot = Simulated(ARM, (Coulomb(0.02), Offset()))
        options = replace(FIXED_FILTER, terms=SIMPLE, base_tilt=False)
        selection = choose_model(record(robot), robot.model, options)
        assert [term.name for _, term in selection.regressor.terms] == [t.name for t in SIMPLE for _ in robot.joints]

    def test_strength_weights_and_freed_signs_of_the_estimator_are_kept(self):
        robot = Simulated(ARM, SIMPLE)
        robot.parameters[robot.regressor.names.index("fv2")] = -2.5
        estimator = Consistent(strength=3.0, weights=(1.0, 2.0, 3.0), signed=("fv2",))
        options = replace(FIXED_FILTER, terms=SIMPLE, base_tilt=False, estimator=estimator, without_blocks=True)
        selection = choose_model(record(robot), robot.model, options)
        assert selection.strength == 3.0
        assert selection.complete(estimator).weights == (1.0, 2.0, 3.0)
        column = selection.wide.names.index("fv2")
        for model in selection.block_models:
            assert model.values[model.columns.tolist().index(column)] == pytest.approx(-2.5, rel=0.1)

    @pytest.mark.parametrize("cutoff", [6.0, 12.0])
    def test_no_motion_filter_is_tried_that_the_sample_rate_does_not_permit(self, cutoff):
        robot = Simulated(ARM, SIMPLE)
        recordings = [robot.record(seed, duration=40.0, rate=30.0, noise=NOISE_NM) for seed in (1, 2)]
        trials = FilteredTrials.from_recordings(recordings, robot.joints, {}, SignalSettings(cutoff=cutoff))
        options = replace(FIXED_FILTER, motion_filter=True, terms=SIMPLE, base_tilt=False)
        assert choose_model(trials, robot.model, options).trials.plan.motion_pass.cutoff <= 12.0


def test_a_static_pose_is_a_part_of_every_fit_and_of_no_block(simple):
    robot, _ = simple
    moving, still = robot.record(1, duration=25.0), robot.record(2, duration=10.0)
    pose = replace(still.samples, q=still.samples.q[:1].repeat(len(still.samples), 0), dq=0.0 * still.samples.q)
    trials = FilteredTrials.from_recordings(
        [moving, replace(still, source="pose", samples=pose)], robot.joints, {}, SignalSettings(cutoff=8.0)
    )
    blocks = trials.blocks()
    regressor = Regressor(robot.model)
    grams = BlockGrams.from_trials(trials, regressor, blocks)
    alone = BlockGrams.from_trials(trials.with_recordings([moving]), regressor, blocks)
    assert grams.counts[:, : blocks.count].tolist() == alone.counts[:, : blocks.count].tolist()
    assert (grams.counts[:, blocks.count + 1] > 0).all()


class TestSigns:
    """Signs of friction and rotor inertia."""

    def test_signs_that_the_data_do_not_contradict_are_kept(self, simple):
        _, selection = simple
        assert not chosen(selection, "sign")
        assert selection.signed == ()

    @pytest.mark.slow
    def test_viscous_friction_of_the_other_sign_is_freed_and_reported(self):
        robot = Simulated(ARM, SIMPLE)
        robot.parameters[robot.regressor.names.index("fv2")] = -2.5
        selection = choose_model(record(robot), robot.model, replace(FIXED_FILTER, base_tilt=False))
        assert "viscous" in chosen(selection, "sign")
        assert "fv2" in selection.signed
        assert "fv2" in selection.complete(Consistent()).signed
        (finding,) = [one for one in selection.findings if one.code == "sign_contradicted"]
        assert "fv2 -2." in finding.message
        recordings = [robot.record(seed, duration=25.0, noise=NOISE_NM) for seed in (1, 2)]
        settings = Settings(cutoff=8.0, motion_cutoff=8.0, velocity="derivative", base_tilt=False)
        result = identify(recordings[:1], recordings[1:], robot.model, settings, "test")
        uses = {judgment.fit.use: judgment.fit for judgment in result.evaluation.uses}
        assert uses["forward_simulation"].answer == "no"
        assert "friction_not_passive" in uses["forward_simulation"].because

    @pytest.mark.slow
    def test_a_sign_that_only_the_held_out_block_contradicts_is_freed_without_it(self):
        robot = Simulated(ARM, SIMPLE)
        robot.parameters[robot.regressor.names.index("fv2")] = -2.5
        blocks = record(robot).blocks()
        block = blocks.pieces[0].block

        def add_friction(trial, recording):
            t, tau = recording.samples.t - recording.samples.t[0], recording.samples.tau.copy()
            for piece in blocks.pieces:
                if piece.block == block and piece.trial == trial:
                    inside = (t >= piece.start) & (t < piece.stop)
                    tau[inside, 1] += 40.0 * recording.samples.dq[inside, 1]
            return replace(recording, samples=replace(recording.samples, tau=tau))

        recordings = [robot.record(seed, duration=25.0, noise=NOISE_NM) for seed in (1, 2)]
        recordings = [add_friction(trial, recording) for trial, recording in enumerate(recordings)]
        trials = FilteredTrials.from_recordings(recordings, robot.joints, {}, SignalSettings(cutoff=8.0))
        estimator = Consistent(weights=(1.0 / NOISE_NM,) * 3)
        options = replace(FIXED_FILTER, base_tilt=False, reduced=True, without_blocks=True, estimator=estimator)
        selection = choose_model(trials, robot.model, options)
        assert selection.blocks == blocks
        assert selection.signed == ()
        (without,) = [model for model in selection.block_models if model.block == block]
        column = without.columns.tolist().index(selection.wide.names.index("fv2"))
        assert without.values[column] == pytest.approx(-2.5, rel=0.2)

    @pytest.mark.slow
    def test_the_mass_matrix_stays_positive_definite_whatever_the_data_show(self):
        robot = Simulated(ARM, (*SIMPLE, RotorInertia()))
        for name in ("Ir1", "Ir2", "Ir3"):
            robot.parameters[robot.regressor.names.index(name)] = -0.5
        selection = choose_model(record(robot), robot.model, replace(FIXED_FILTER, base_tilt=False))
        assert not any(name.startswith("Ir") for name in selection.signed)
        row = next(row for row in selection.tried if row.step == "sign" and row.name == "rotor_inertia")
        assert row.pays
        assert not row.chosen
        assert [one.code for one in selection.findings] == ["sign_contradicted"]
