# SPDX-License-Identifier: Apache-2.0
"""Findings: everything that the package reports about data or a model, with stable codes.

`CATALOG` lists all codes. A finding is made once, by `make_finding`, where it is found, and never edited as text: the
verdict, `ignore:`, reports and programs read its code and severity; `format_finding` is the text for users.

`python -m robot_dyn_id.findings > docs/findings.md` writes the page of all codes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["info", "warning", "error"]

SIGNS: dict[Severity, str] = {"info": "-", "warning": "!", "error": "!"}
"""Sign of a line of text about a finding."""

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error")
"""In ascending order. Error: the data are refused, or the verdict is bad; warning: the verdict is suspect."""


@dataclass(frozen=True)
class Definition:
    """Entry of the catalog.

    Attributes:
        severity: severity unless the place that makes the finding states another one.
        cause: what leads to the finding, for the documentation.
        cure: what to do, an imperative phrase; the action of the finding unless the place that makes it is more
            specific. Empty: nothing has to be done.
        overrulable: whether the finding refuses data and may be overruled by `ignore`; it is a warning then.
    """

    severity: Severity
    cause: str
    cure: str = ""
    overrulable: bool = False


SECTIONS: Mapping[str, Mapping[str, Definition]] = {
    "Health of recordings": {
        "effort_constant": Definition(
            "error",
            "The effort of a joint is constant, or zero in more than 99 % of the samples: its sensor or topic is not "
            "connected.",
            "exclude the joint with `identify:` in the configuration, or record its effort",
            overrulable=True,
        ),
        "no_motion": Definition(
            "error",
            "No joint moves by more than 0.02 rad or 5 mm: a static pose does not excite the dynamics.",
            "record a motion of all joints",
            overrulable=True,
        ),
        "position_noise": Definition(
            "error",
            "The positions of a joint scatter by more than 0.02 rad or 5 mm without a motion: more than half of their "
            "variance changes from sample to sample.",
            "check the encoder and the channel of the positions",
            overrulable=True,
        ),
        "positions_in_degrees": Definition(
            "error",
            "Positions exceed a full turn and the position limits of the URDF.",
            "convert positions and velocities to radians",
            overrulable=True,
        ),
        "rows_unusable": Definition(
            "error",
            "More than 20 % of the samples are missing, not finite, implausibly large or out of order.",
            "correct the export or the recorder",
            overrulable=True,
        ),
        "effort_sign": Definition(
            "error",
            "The efforts of the named joints oppose the torque of the other joints' motion, or of the URDF's own "
            "masses: their drives count in the other direction, the gravity vector or an axis of the URDF is "
            "wrong, or the URDF describes another robot with joints of the same names.",
            "check that the URDF describes this robot (axes, lengths) and its gravity vector; if so, set `sign: -1` "
            "for the joints in the configuration, or remove it where it is set",
            overrulable=True,
        ),
        "effort_in_amperes": Definition(
            "error",
            "The efforts of all loaded joints are less than 15 % of the torque of the URDF's own masses, which is "
            "typical of motor currents.",
            "give `gain` [N m/A] for each joint in the configuration, or set `effort_kind: current` for gains from the "
            "masses of the URDF",
            overrulable=True,
        ),
        "load_changed": Definition(
            "warning",
            "Another load at the last link explains more than 20 % of the residuals of a recording, and 40 % of those "
            "of the clearest joint: the tool or payload was changed between recordings, or while one was recorded.",
            "identify and validate with the same tool, or describe each tool by a URDF of its own",
        ),
        "gain_inconsistent": Definition(
            "error",
            "With another factor of one joint's effort the rigid-body dynamics of all joints fit, with free inertial "
            "parameters: its gain or unit differs from that of the other joints. Several joints are named where their "
            "efforts do not show which of them it is. A warning below a factor of two, information below 1.2.",
            "compare the effort of the joint with a known load, and correct its `gain` or unit if that confirms it",
            overrulable=True,
        ),
        "gain_unverifiable": Definition(
            "info",
            "Neither weight nor inertia in the efforts of a joint determines their scale or sign, or only roughly: a "
            "wrong gain there would not be found, or not below the error that is given. A warning where only the "
            "weight of the URDF's masses could verify it, and differs from the effort by more than a factor of three.",
            "compare the effort of the joint with a known load",
        ),
        "urdf_contradicted": Definition(
            "error",
            "The weight in the efforts of several joints differs from that of the URDF's own masses by more than a "
            "factor of two, and no bodies on the axes of the URDF explain the effort of a joint: the URDF describes "
            "another robot. Information where bodies on its axes explain the efforts, but their weight differs as "
            "much, or on all loaded joints by more than 1.5: its masses are placeholders or another robot's, or all "
            "gains are wrong. A warning where the ratio is nearly the same on all loaded joints (information from 1.2 "
            "to 1.3): unit or gain of all efforts may be wrong, which nothing but these masses could show. Beyond a "
            "factor of three on all of them a model is made, and its verdict is bad.",
            "check that the URDF describes this robot (axes, zero positions, tool) and its masses, and the unit and "
            "the gain of the efforts",
            overrulable=True,
        ),
        "effort_units": Definition(
            "error",
            "The efforts of all loaded joints are about 1000 times the torque of the URDF's own masses.",
            "convert the efforts to N m",
            overrulable=True,
        ),
        "effort_gravity_compensated": Definition(
            "warning",
            "The efforts contain inertia or friction, but no weight in any direction: the driver compensates gravity "
            "before it reports them. The model is identified without gravity, and predicts such efforts. Information "
            "if `effort_kind` states it.",
            "record the complete joint torques for a model with gravity, or state `effort_kind`",
        ),
        "effort_external": Definition(
            "error",
            "The efforts contain neither weight nor inertia nor friction, as estimates of external torques.",
            "record measured joint torques or motor currents, or state `effort_kind`",
            overrulable=True,
        ),
        "gravity_direction": Definition(
            "error",
            "Another direction of gravity in the base frame explains the efforts, with free inertial parameters: the "
            "base is mounted on a wall, on a ceiling or on a slope. A warning below 15 degrees.",
            "set the gravity vector",
            overrulable=True,
        ),
        "joints_swapped": Definition(
            "error",
            "With two joints exchanged the rigid-body dynamics fit: their names, or columns, are exchanged.",
            "correct the names or the order of the joints in the recording",
            overrulable=True,
        ),
        "urdf_in_millimeters": Definition(
            "error",
            "Consecutive joints of the URDF are more than 10 m apart.",
            "convert the lengths of the URDF to meters",
            overrulable=True,
        ),
        "effort_zero_at_rest": Definition(
            "info",
            "Efforts are exactly zero while the robot is at rest: the brakes carry it. These rows are left out.",
        ),
        "effort_saturated": Definition(
            "warning",
            "Many samples of an effort in motion are at its very largest or smallest value: the sensor or the drive is "
            "at its limit. These rows are left out.",
            "record a slower motion, or one with a smaller load",
        ),
        "effort_frozen": Definition(
            "warning",
            "The effort of a joint is exactly constant for a time in which the joint moves, or after which the effort "
            "jumps, while it otherwise changes from sample to sample. These rows are left out.",
            "check the connection of the effort sensor",
        ),
        "positions_wrapped": Definition(
            "info",
            "The angle of a joint jumps by whole turns, or is a whole turn outside of the limits of the URDF: it is "
            "wrapped to 0 to 2 pi, or to -pi to pi. It is continued across the jumps.",
        ),
        "encoder_spikes": Definition(
            "info",
            "Positions jump by more than five times what the joint otherwise moves from sample to sample, and return "
            "after at most ten samples. These samples are left out.",
            "check the encoder, its cable, and the driver that publishes its positions",
        ),
        "encoder_jumps": Definition(
            "warning",
            "Positions jump by more than five times what the joint otherwise moves from sample to sample, and do not "
            "return: the encoder has lost its zero, or the file holds two recordings.",
            "check the encoder; split the recording at these times",
        ),
        "encoder_frozen": Definition(
            "warning",
            "The position of a joint is exactly constant for a time and then jumps. These rows are left out. An error "
            "if that is more than 15 % of a recording.",
            "check the encoder, and the driver that publishes its positions",
        ),
        "stamps_not_in_seconds": Definition(
            "error",
            "Time stamps are more than 0.2 s apart, or are times since 1970 in another unit: they are in milliseconds, "
            "microseconds or nanoseconds.",
            "convert the time stamps to seconds",
        ),
        "sample_rate_low": Definition(
            "error",
            "Samples are more than 0.2 s apart: they show positions, but no accelerations. Stamps in milliseconds have "
            "a finding of their own: in that unit these joints would be faster than any arm.",
            "record the joint states at 50 Hz or more",
        ),
        "clock_jitter": Definition(
            "info",
            "Time stamps jitter, but the samples are equally spaced, as their interpolation shows: they are stamped on "
            "arrival. The stamps are averaged.",
            "stamp samples where they are measured",
        ),
        "effort_coarse": Definition(
            "warning",
            "The effort of a joint takes fewer than 50 distinct values: its sensor resolves only a few steps.",
            "use a sensor with a finer resolution, or a motion that needs larger efforts",
        ),
        "effort_too_large": Definition(
            "warning",
            "The effort is more than four times the torque of the URDF's own masses.",
            "check `gain` in the configuration, the payload, and the masses of the URDF",
        ),
        "joint_barely_moves": Definition(
            "warning",
            "A joint moves by less than 0.02 rad or 5 mm: its friction and inertia are not identifiable.",
            "record a motion of the joint, or exclude it with `identify:` in the configuration",
        ),
        "position_limits_exceeded": Definition(
            "warning",
            "Positions exceed the limits of the URDF by more than 0.05 rad or m.",
            "check the zero positions, the units and the limits of the URDF",
        ),
        "clock_gaps": Definition(
            "warning",
            "Time stamps are interrupted for more than five sample periods and a period of the cut-off; the recording "
            "is split there. Information only for flexible joints.",
            "check the load of the computer and the network while recording",
        ),
        "values_missing": Definition(
            "warning",
            "Efforts or velocities of single joints are missing or implausible in more than 1 % of the samples. An "
            "effort that is missing leaves its joint out of that sample. Information below 1 %.",
            "check the driver and the recorder of the joint",
        ),
        "velocity_mismatch": Definition(
            "warning",
            "Recorded velocities differ from the derivative of the positions by more than 5 %, or are late. "
            "Information if derivatives of the positions are used instead.",
            "use `velocity: derivative`, or correct the velocity filter of the driver",
        ),
        "velocities_scaled": Definition(
            "warning",
            "Recorded velocities differ from the derivatives of the positions by the same factor on all joints: the "
            "time stamps, or all velocities, are scaled. With wrong stamps all inertias are wrong by the square of the "
            "factor.",
            "check the sample rate and the unit of the time stamps; leave the velocities out if these are right",
        ),
        "effort_delayed": Definition(
            "warning",
            "The inertial and gravity torque of the strong joints is late or early by a common time: efforts and "
            "positions are stamped at different times. The delay is compensated.",
            "correct the time stamps, or the filter of the effort signal",
        ),
        "effort_outliers": Definition(
            "info",
            "Single efforts are far from those around them, which agree, as transmission errors leave them. The median "
            "of the samples around them replaces them.",
            "check the wiring and the driver of the joint",
        ),
        "position_coarse": Definition(
            "warning",
            "The positions of a joint are recorded in steps of more than 2 mrad or mm: its acceleration is noise.",
            "record the positions with the full resolution of the encoders",
        ),
        "one_way_motion": Definition(
            "warning",
            "A joint moves in one direction only: its Coulomb friction and a constant effort have the same effect.",
            "record a motion that reverses every joint",
        ),
        "effort_offset_drifts": Definition(
            "warning",
            "The zero of an effort sensor moves along a recording or between recordings. Where the model is chosen "
            "from the data and cross-validation shows it, each recording is fitted with a zero of its own, and the "
            "model has the mean. Information below 10 % of the effort's variation.",
            "zero the torque sensors before the recording, or record with one temperature of the drives",
        ),
        "effort_zero_unknown": Definition(
            "info",
            "The zeros of the efforts differ between the training recordings. The offset of the model is their mean, "
            "and the zero of another recording differs from it; validation states by how much.",
            "measure the zero in a known pose, and subtract it from the effort",
        ),
        "friction_drifts": Definition(
            "warning",
            "The friction of a joint changes along a recording by more than 15 %: the drives warm up.",
            "warm up the robot before the recording",
        ),
        "contact": Definition(
            "warning",
            "For a short time the torque differs far more than usual from the model: the robot touched something, or "
            "the effort failed.",
            "record without contacts, or leave these times out with `exclude` in the configuration",
        ),
        "clock_drift": Definition(
            "warning",
            "The delay of the efforts changes steadily during a recording: efforts and positions are stamped by "
            "different clocks. The drift is compensated.",
            "stamp all channels by one clock",
        ),
        "too_little_motion": Definition(
            "warning",
            "The motion, of the bandwidth that it has, holds fewer independent positions than there are parameters.",
            "record longer, in whole periods of an excitation",
        ),
    },
    "Recorded data": {
        "samples_dropped": Definition(
            "info",
            "Samples without time stamp, joints or valid values are left out.",
            "check the recorder or the export",
        ),
        "recording_repeated": Definition(
            "warning",
            "Two training recordings have samples in common: they count twice, so that standard deviations and "
            "cross-validated errors are too small.",
            "leave one of the recordings out",
        ),
        "data_unused": Definition("info", "A file holds columns or keys that the package does not read."),
        "file_damaged": Definition(
            "warning",
            "A bag was not closed, or a part of it is broken; everything that can be read is used.",
            "recover the bag, or copy it again",
        ),
        "stamps_constant": Definition(
            "info",
            "The publisher does not fill in time stamps; arrival times, which jitter, are used instead.",
            "correct the publisher of the joint states",
        ),
        "channels_merged": Definition(
            "info",
            "A channel of the joints comes from another topic; it is interpolated at the stamps of the joint states.",
        ),
        "clocks_differ": Definition(
            "warning",
            "Two topics of a bag have clocks that differ by more than 50 ms, by the arrival of their messages.",
            "synchronize the clocks of the publishers, or stamp both topics on the same computer",
        ),
        "topic_chosen": Definition(
            "info",
            "A bag has several topics of joint states with the same joints; the one called joint_states is read.",
            "name the topic with `topic` in the configuration",
        ),
        "type_definition_missing": Definition(
            "info",
            "The definition of a message type is neither in the bag nor installed.",
            "install the package of the message type and recover the bag again",
        ),
        "rest_left_out": Definition("info", "The robot is at rest for more than 5 s; that time is left out."),
        "times_excluded": Definition("info", "Times of a recording are left out as `exclude` states."),
        "joints_assumed_fixed": Definition(
            "info",
            "Joints of the URDF are not recorded, and taken to be fixed at position 0.",
            "give their positions with `held` in the configuration if they are elsewhere",
        ),
        "fixed_joint_differs": Definition(
            "warning",
            "A joint that is fixed for the identification is recorded, and moves, or rests elsewhere, by more than "
            "0.02 rad or 5 mm: its motion and pose are in the efforts of the others.",
            "identify the joint too, or record again with this joint where it is fixed",
        ),
        "joints_unknown": Definition(
            "info", "Recorded joints are not moving joints of the URDF.", "check the names of the joints"
        ),
        "gains_from_masses": Definition(
            "warning",
            "Currents came without gains, which are estimated from the masses of the URDF: all torques are as wrong as "
            "these masses are.",
            "give measured gains, `gain` [N m/A] of each joint, in the configuration",
        ),
        "gain_unknown": Definition(
            "error",
            "Currents, or motor torques, came without gains, and weight and inertia of some joints are too small to "
            "estimate theirs from the masses of the URDF: the model predicts amperes there. All uses are answered with "
            "no, and exports, controllers, payloads and simulations refuse the model.",
            "measure the gains with a known weight (command `gains`), or give `gain` [N m/A or N/A], torque constant "
            "times gear ratio, of each joint in the configuration, and identify again",
        ),
        "gain_unused": Definition(
            "warning",
            "A gain is configured for a joint whose recorded effort is a torque already.",
            "remove `gain`, or record the current",
        ),
        "effort_sources_mixed": Definition(
            "warning",
            "The efforts of some joints are computed from currents, those of others are recorded efforts.",
            "check that each joint's effort is in N m or N",
        ),
        "slow_rows_kept": Definition(
            "warning",
            "A joint is never faster than its low-velocity threshold, so that its rows near reversals are kept.",
            "lower `reversal_speed`, or record a faster motion",
        ),
        "configuration_unused": Definition(
            "info", "Entries of the configuration do not apply to this task or to these data.", "remove the entries"
        ),
    },
    "Estimates": {
        "not_excited": Definition(
            "warning",
            "The motion does not excite some base parameters; they stay at the prior, or at zero without one. "
            "Information where no motion separates them, as rounded angles of the robot description leave parameters "
            "apart that are one for exact angles.",
            "record a motion of the joints that the report names for each parameter",
        ),
        "joints_in_proportion": Definition(
            "info",
            "The velocities of two joints are proportional in all training data (squared correlation above 0.99): "
            "their friction and inertia have the same columns, so that only sums of them are determined.",
            "record a motion that moves the joints separately",
        ),
        "negative_parameter": Definition(
            "warning",
            "A friction, inertia or stiffness is negative by more than three standard deviations, which is not "
            "physical.",
            "check for a delayed effort signal, a wrong smoothing width, a wrong sign, and too little motion",
        ),
        "constants_not_identified": Definition(
            "warning",
            "Constants of a term, such as a Stribeck velocity, are not determined by the data.",
            "record more motion at low velocity, or fix the constants in the configuration",
        ),
        "base_tilted": Definition(
            "info",
            "A small tilt of the base against the gravity vector that was given explains the torques significantly "
            "better in cross-validation; the model has the tilted gravity vector.",
            "check the mounting of the robot, and give the gravity vector of the message to other tools",
        ),
        "gravity_of_prior": Definition(
            "info",
            "No gravity vector was given, and the parameter set that is the prior has another one than the default, "
            "such as that of a tilted base: the model has it, too.",
            "give the gravity vector if the base has been mounted in another way since",
        ),
        "prior_not_physical": Definition(
            "info",
            "A link of the URDF has a mass or inertia that no body can have, or hardly one; a body close to it is the "
            "prior.",
            "correct the inertia in the URDF",
        ),
        "prior_from_geometry": Definition(
            "info",
            "The URDF has no masses, or placeholders: bodies that are made from its geometry and the rated efforts of "
            "its joints determine what the data do not.",
            "write estimates of masses and inertias into the URDF if they are known",
        ),
        "prior_contradicted": Definition(
            "info",
            "Parameters differ from the prior by more than their own size: the URDF has other axes or lengths, or its "
            "masses are placeholders.",
            "check that the URDF describes this robot (axes, link lengths, tool) and that its masses are realistic",
        ),
        "estimator_replaced": Definition(
            "warning",
            "The estimator did not converge, or its estimate is far worse than that of least squares, which is used "
            "instead.",
            "change its options, or fix the constants of the terms that these data do not determine",
        ),
        "links_contradicted": Definition(
            "warning",
            "Physically consistent links predict held-out blocks more than 2 % worse than bodies that cannot exist, "
            "with the same columns and signs: signals or kinematics contradict every real robot.",
            "check the units, signs and delays of the efforts and the kinematics of the URDF, or record longer",
        ),
        "simulated_nearest_robot": Definition(
            "warning",
            "The estimate has a mass matrix that is not positive definite, so that the physically consistent robot "
            "closest to it was simulated.",
            "record a richer motion, or use the estimator `consistent`",
        ),
        "intervals_lost": Definition(
            "info",
            "The intervals of a bootstrap belong to all parameters; essential ones have standard deviations only.",
        ),
        "bootstrap_deviations": Definition("info", "Standard deviations were computed by a bootstrap of residuals."),
        "periods_averaged": Definition("info", "Rows were averaged over the periods of the motion."),
        "total_least_squares_errors": Definition(
            "info", "Total least squares attributes errors to the columns as well as to the torques."
        ),
    },
    "Validation": {
        "cross_check_failed": Definition(
            "error",
            "The regressor or the dynamics differ from Pinocchio's on the held-out samples.",
            "report the fault with the URDF",
        ),
        "held_out_error": Definition(
            "error",
            "The error on held-out data is above `thresholds.bad_nrmse`.",
            "check signs, gains and terms of the joints with the largest errors, then record again",
        ),
        "no_better_than_constant": Definition(
            "error",
            "The prediction of a joint that carries a share of the torque is not better than the best constant.",
            "check the effort of the joint, and record a larger motion of it",
        ),
        "worse_than_urdf": Definition(
            "error",
            "The held-out error is more than 10 % above that of the URDF's own parameters.",
            "record a richer motion, or use an estimator with a prior",
        ),
        "joint_not_identifiable": Definition(
            "warning",
            "Apart from its mean, less than half of the variance of a joint's torque is explained. Information if the "
            "error is below the friction of the joint, or below `thresholds.rated_share` of its rated effort.",
            "record a larger and faster motion of the joint",
        ),
        "joint_held_out_error": Definition(
            "warning",
            "The held-out error of a joint is above `thresholds.joint_nrmse`. Information if it is below the friction "
            "of the joint, or below `thresholds.rated_share` of its rated effort.",
            "check the effort of the joint and its friction terms",
        ),
        "condition_number_high": Definition(
            "info",
            "Some parameters are poorly conditioned: the motion hardly separates their effects, so that single "
            "parameters are uncertain. A warning for flexible joints.",
            "use a richer excitation",
        ),
        "rows_dropped": Definition(
            "warning",
            "More than `thresholds.dropped_share` of the samples were dropped; the report lists the reasons.",
            "check the recorder and the units of the channels",
        ),
        "outside_training": Definition(
            "info",
            "The motion exceeds the trained positions, velocities or accelerations by more than half, where the model "
            "extrapolates. A warning in a validation if all joints together do so in more than "
            "`thresholds.outside_share` of the samples.",
            "record training data of such motion",
        ),
        "prediction_uncertain": Definition(
            "info",
            "The covariance of the parameters makes the predicted torque more uncertain than `thresholds.own_nrmse`.",
            "train longer, or on motion like the held-out one",
        ),
        "held_out_too_slow": Definition(
            "warning",
            "A joint reaches less than 20 % of its trained velocity in the held-out motion, which is too slow to "
            "validate inertia and friction.",
            "validate on a motion like the trained one",
        ),
        "joint_not_validated": Definition(
            "warning",
            "The held-out data have no valid effort of a joint: its prediction is unknown, and the model is fit for no "
            "use.",
            "record the effort of every joint in the held-out data",
        ),
        "held_out_in_training": Definition(
            "warning",
            "Held-out data are among the training data, or among those of a parameter set that is the prior: the same "
            "samples under any name, a part of them, or a recording of the same time by the same clock.",
            "validate on a recording of its own, or identify without held-out data: the model is cross-validated then",
        ),
        "block_not_validated": Definition(
            "warning",
            "Cross-validation repeats the identification without each block of the recordings. Without some of them it "
            "failed, so that the held-out errors lack these blocks.",
            "record longer: every block should excite all parameters",
        ),
        "validated_at_rest": Definition(
            "info",
            "The robot is at rest in a part of the held-out data, where only gravity and stiction are validated. A "
            "warning if that is more than half of the time.",
            "record motion",
        ),
        "sign_contradicted": Definition(
            "info",
            "Friction or rotor inertia of free sign predicts held-out blocks better, by more than 5 % of the squared "
            "error and three standard errors: delays, sensors behind the friction, or their hysteresis. Signs of "
            "viscous and Coulomb friction are free then; friction that drives a joint excludes forward simulation "
            "(`friction_not_passive`). Rotor inertia stays positive, so that the mass matrix is positive definite.",
            "check the delays of the efforts, and which torque the sensors measure",
        ),
        "friction_not_passive": Definition(
            "warning",
            "The friction of a joint, all of its terms together, has the direction of the motion at a speed within the "
            "trained range: it adds energy, and simulated motions run away.",
            "identify with `estimator: consistent`, which keeps friction positive, and without `absolute_velocity`",
        ),
        "mass_matrix_indefinite": Definition(
            "warning",
            "The mass matrix is not positive definite in some configurations: the model can predict torques, but must "
            "not be used for forward dynamics or computed-torque control.",
            "record a faster or longer motion, or use the estimator `consistent`",
        ),
    },
    "Uses of a model": {
        "gravity_error_high": Definition(
            "info",
            "The held-out error of a joint exceeds both `thresholds.friction_share` of the friction that holds it and "
            "`thresholds.rated_share` of its rated effort: under gravity compensation the arm drifts.",
            "check the effort of the joint, and record more positions of it",
        ),
        "gravity_uncertain": Definition(
            "info",
            "Two standard deviations of the torque at rest exceed the error that gravity compensation tolerates.",
            "record longer, in more positions of all joints",
        ),
        "offset_large": Definition(
            "info",
            "The constant part of a joint's effort exceeds what gravity compensation, or feed-forward and computed "
            "torque, tolerate as an error. The data of one sensor cannot distinguish a wrong zero from a torque, and a "
            "controller that commands a wrong zero pushes the joint. Collision detection and payloads, which measure "
            "by the same sensor, are not concerned.",
            "compare the effort of the joint at rest with its weight, correct the zero of the sensor, or command the "
            "torque without this offset",
        ),
        "torque_error_high": Definition(
            "info",
            "The held-out error of a joint exceeds both `thresholds.torque_share` of its RMS torque and "
            "`thresholds.rated_share` of its rated effort: feed-forward and computed torque correct it by feedback.",
            "check the effort of the joint and its friction terms, and record longer",
        ),
        "inertia_uncertain": Definition(
            "info",
            "Two standard deviations of a diagonal entry of the mass matrix exceed `thresholds.inertia_share` of it, "
            "or the entry is not positive.",
            "record faster motion of the joint, with frequent reversals",
        ),
        "rollout_error_high": Definition(
            "info",
            "After 1 s of simulation under the recorded efforts, without feedback, a joint is farther from the "
            "recorded motion than `thresholds.rollout_share` of its trained range.",
            "use the model in simulations with feedback, or restart them more often from measured states",
        ),
        "rollout_diverges": Definition(
            "info",
            "After 0.1 s of simulation under the recorded efforts, without feedback, a joint is already farther from "
            "the recorded motion than a tenth of what is tolerated after 1 s: inertia or friction of the joint are "
            "wrong, or too small against the errors of the effort.",
            "record faster motion of the joint, with frequent reversals",
        ),
        "rollout_not_computed": Definition(
            "info",
            "The model cannot be simulated on the held-out data: they are too short, a term has no forward dynamics, "
            "or the mass matrix is not positive definite.",
            "give longer recordings, or use terms that can be simulated",
        ),
        "contact_threshold_high": Definition(
            "info",
            "The torque error that 99.9 % of the held-out samples do not exceed is above `thresholds.contact_share` of "
            "the rated effort: smaller external torques are not detectable on this joint.",
            "check the friction terms of the joint, and the noise of its effort",
        ),
        "payload_resolution_low": Definition(
            "info",
            "The errors of the model imitate a payload above `thresholds.payload_share` of the mass that needs the "
            "rated effort of a joint.",
            "train longer, and identify payloads with a slow motion through many positions",
        ),
    },
    "Prediction, simulation and export": {
        "samples_not_predicted": Definition(
            "info", "The motion around some time stamps is not recorded.", "record without gaps"
        ),
        "trajectory_not_followed": Definition(
            "info",
            "The simulated robot deviates from the trajectory by more than 0.01 rad or m, often because a motor is at "
            "its effort limit.",
            "design a slower motion, or check the effort limits of the URDF",
        ),
        "simulation_drifts": Definition(
            "info",
            "Under recorded efforts alone, errors of model and efforts accumulate, so that the simulation leaves the "
            "recorded motion.",
            "restart the simulation from the recorded state, more often than the joints leave the motion",
        ),
        "position_limits_passed": Definition(
            "info",
            "The simulated motion passes a position limit of the URDF; the simulated robot has no mechanical stops.",
            "use another motion, or restart the simulation more often",
        ),
        "trajectory_of_other_urdf": Definition(
            "info",
            "The trajectory was designed for a URDF with the same joints and other content.",
            "design the trajectory for this URDF",
        ),
        "trajectory_without_velocities": Definition(
            "warning",
            "Points of a trajectory have positions alone: joint trajectory controllers interpolate them linearly, with "
            "jumps of the velocity that no feed-forward can follow.",
            "give velocities and accelerations at every point",
        ),
        "trajectory_without_accelerations": Definition(
            "info",
            "Points of a trajectory have no accelerations: joint trajectory controllers interpolate cubics, whose "
            "accelerations jump at the points. The feed-forward there is that of the segment that begins.",
            "give accelerations at every point",
        ),
        "effort_limit_missing": Definition(
            "warning",
            "The URDF has no effort limit for a joint, so that its torque cannot be checked.",
            "write the rated effort into the URDF",
        ),
        "limits_without_gravity": Definition(
            "warning",
            "The model was identified from efforts without gravity: the motors carry it in addition to the torques "
            "that are checked.",
            "identify from complete joint torques, or lower the effort limits of the URDF by the gravity torque",
        ),
        "effort_above_limit": Definition(
            "error",
            "The 95 % upper bound of a joint's torque along a trajectory, or of its command, which lacks what the "
            "driver adds, exceeds the effort limit of the URDF. The "
            "bound contains the covariance of the parameters and the held-out error.",
            "slow the trajectory down",
        ),
        "effort_unbounded": Definition(
            "error",
            "The torque of a joint along a trajectory depends on a parameter that is not identifiable: it has no upper "
            "bound that could be compared with the effort limit.",
            "identify with an excitation in which this joint and those after it move, or with a simpler friction model",
        ),
        "bound_without_held_out_error": Definition(
            "warning",
            "The parameter set has no error on held-out data: the 95 % upper bounds of torques contain the covariance "
            "of the parameters only, and may be too low.",
            "identify again with held-out data",
        ),
        "export_of_bad_verdict": Definition(
            "warning",
            "The verdict on the exported parameters is bad, or holding the arm takes more than its effort limits: "
            "torques that are computed from them can be wrong.",
            "identify again; command no torques of this model",
        ),
        "friction_left_out": Definition(
            "info",
            "A controller of another package cannot compensate friction next to what the driver adds to a command.",
            "compare the friction that the driver compensates with the identified one",
        ),
        "term_not_exported": Definition(
            "info", "The format cannot store a term, or a friction that is negative.", "use the parameter file"
        ),
        "name_not_exported": Definition(
            "info",
            "The format reserves a joint's name, or has it already: the joint is written with another one.",
            "use the name of the message where the exported file is used",
        ),
        "friction_approximated": Definition(
            "info",
            "A controller of another package has a friction model of its own: what it cannot hold (viscous friction, "
            "dependence on load and position, presliding, offsets) is left out, and other shapes are approximated. The "
            "largest differences are given.",
            "use the parameter file, or exported source code, for the complete friction",
        ),
        "driver_compensates": Definition(
            "info",
            "The robot's driver adds gravity, friction or Coriolis torques to a command, and a model of links and "
            "joints contains them: a simulation needs them, a controller must not command them.",
            "switch the compensation of these torques off in the controller",
        ),
        "driver_unknown": Definition(
            "info",
            "It is not known what the driver adds to a command: exported source code has the torque of the "
            "motors but no function for commands.",
            "state `robot_compensates` at the identification or at the export",
        ),
        "drive_units_not_exported": Definition(
            "info",
            "A controller scales torques to the units of its drives, which no recording shows.",
            "set the scaling factors from the manual of the drives, or tune them",
        ),
        "tool_inertia_not_exported": Definition(
            "info",
            "A controller compensates the weight of its tool, not its inertia.",
            "move the tool slowly",
        ),
        "presliding_not_exported": Definition(
            "info",
            "The format has Coulomb friction without the elastic deflection before a joint slides: what is written is "
            "too large in motions that are shorter than the breakaway displacement.",
            "use the parameter file, or the node `simulator` with it",
        ),
        "gravity_not_exported": Definition(
            "info",
            "The model has another gravity vector than a level base on Earth, such as that of a tilted base, and the "
            "format has no place for it.",
            "give the gravity vector of the message to the tool, or turn the base there",
        ),
        "smoothing_not_exported": Definition(
            "info", "The format has Coulomb friction without a smoothing width.", "use the parameter file"
        ),
        "inertia_not_physical": Definition(
            "info",
            "The identified inertias are not physically consistent; simulators may refuse them.",
            "identify with `estimator: consistent`",
        ),
        "held_links_emptied": Definition(
            "info",
            "The links of fixed joints have more mass in the URDF than was identified for them and their carrier.",
            "correct the masses in the URDF",
        ),
    },
    "Payload and drive gains": {
        "payload_not_identified": Definition(
            "info",
            "The motion does not determine some inertial parameters of the payload.",
            "turn the joints before the payload about all axes",
        ),
        "payload_uncertain": Definition(
            "warning",
            "The standard deviation of the mass is above 10 % of it, or that of the center of mass above 2 cm.",
            "record a longer motion that turns the payload over",
        ),
        "payload_not_physical": Definition(
            "info",
            "The estimated inertia of the payload is not physically consistent; the consistent body closest to it is "
            "used.",
            "record a faster motion with the payload",
        ),
        "faster_than_arm": Definition(
            "info",
            "The motion with the payload is faster than the training data of the bare arm, so that friction is "
            "extrapolated.",
            "record the payload at the speeds of the bare arm",
        ),
        "payload_joint_at_rest": Definition(
            "info",
            "Joints are at rest while others move: dry friction holds them at any torque within its own, so that their "
            "efforts are not used.",
            "move these joints too if the mass is poorly identified",
        ),
        "arm_model_doubtful": Definition(
            "warning",
            "The model of the bare arm that a payload is identified on is not good itself: what is wrong in its "
            "torques is in the payload, beyond the standard deviations.",
            "identify the bare arm again, after the actions of its findings",
        ),
        "payload_changed": Definition(
            "error",
            "The two halves of the measurement show different payloads: it has moved in the gripper or has fallen off, "
            "or the friction has changed.",
            "secure the payload, warm the joints up for longer, and measure again",
        ),
        "payload_declared_wrong": Definition(
            "error",
            "The declared payload is not the one that the arm carries: the difference is larger than the errors of the "
            "estimate allow, at the level of significance of the test.",
            "declare the identified payload, or remove what the arm carries",
        ),
        "sensor_offset_not_identified": Definition(
            "info",
            "The motion does not separate the offset of a wrench channel from the weight of the tool.",
            "turn the sensor about all axes",
        ),
        "gravity_scale_unknown": Definition(
            "info",
            "Only the products of gains and masses are identifiable from drives at rest, so that gravity is known in "
            "drive units, and neither masses nor gains are.",
            "trust the total mass of the URDF, or hold a known weight in further poses",
        ),
        "gravity_joint_without_weight": Definition(
            "info",
            "The drive of a joint shows no weight: its axis is vertical, its links are balanced or light, or the "
            "weight is smaller than the noise of the drive.",
        ),
        "gravity_residual_large": Definition(
            "warning",
            "Poses held at rest do not fit weight and dry friction: the arm was still settling, touched something, "
            "carried another weight, or has springs.",
            "record again: hold each pose for a second, from both sides, without contact",
        ),
        "load_fit_error": Definition(
            "error",
            "The identified payload or gains do not explain the recordings that they were identified from: another "
            "load, another arm, a collision, or terms that the model lacks.",
            "check the link, the payload, the model of the bare arm and the units of the efforts, then record again",
        ),
        "gain_not_identified": Definition(
            "info",
            "The payload changes the torque of a joint too little to determine its gain.",
            "use a heavier payload, or motions in which the joint carries it",
        ),
    },
    "Flexible joints": {
        "nothing_held_out": Definition(
            "warning", "No experiment is held out, so that the model is not validated.", "give other experiments"
        ),
        "equations_not_validated": Definition(
            "warning",
            "The held-out experiments determine no equation of a kind (link, spring or motor).",
            "validate on a motion recorded with every sensor",
        ),
        "flexible_joint_not_identified": Definition(
            "warning", "No parameter of a flexible joint is identified.", "record a motion of the joint"
        ),
        "group_not_identified": Definition(
            "warning",
            "A group of parameters is not identified from these experiments.",
            "record the experiments that the plan names",
        ),
    },
    "Fleets": {
        "recording_left_out": Definition(
            "warning",
            "A recording of the manifest cannot be read, is refused by a health check, has other choices than the "
            "others, or is listed twice under different names.",
            "correct the recording or its entry in the manifest, and run again: what is done is kept",
        ),
        "robot_differs": Definition(
            "warning",
            "The parameters of a robot differ from those of the other robots by more than their variation from robot "
            "to robot and the noise explain (docs/fleet.md states how often sound robots are named): another payload, "
            "wear, another part, efforts in another unit, or another robot under this serial number.",
            "inspect the robot, above all the joints of the parameters that are named",
        ),
        "robot_recordings_disagree": Definition(
            "warning",
            "Recordings with one serial number differ more than those of one robot do: two robots share the number, "
            "the robot was changed between them, or one is in another unit.",
            "check the serial numbers, dates and configurations of the manifest",
        ),
        "robot_drifts": Definition(
            "info",
            "A parameter of a robot changes with time by more than the noise explains (Holm's correction, intended "
            "family-wise error 1 %).",
            "look at the trend: friction changes with temperature and wear",
        ),
        "fleet_small": Definition(
            "info",
            "The fleet has fewer robots than the variation from robot to robot can be estimated from: every robot is "
            "identified from its own recordings alone, and none is compared.",
            "record more robots of this type",
        ),
    },
}
"""All findings by section."""

CATALOG: Mapping[str, Definition] = {code: entry for entries in SECTIONS.values() for code, entry in entries.items()}
"""All findings by code."""

OVERRULABLE: tuple[str, ...] = tuple(code for code, entry in CATALOG.items() if entry.overrulable)
"""Codes that refuse data and may be overruled by `ignore`."""


@dataclass(frozen=True)
class Finding:
    """One finding about data or a model.

    Attributes:
        code: stable word, a key of `CATALOG`.
        severity: `info`, `warning` (the verdict is suspect) or `error` (data are refused, or the verdict is bad).
        joints: names of the joints that it concerns; empty: the whole robot, or no joint in particular.
        message: what was found and where, in one line.
        action: what to do about it, an imperative phrase; empty if nothing has to be done.
    """

    code: str
    severity: Severity
    joints: tuple[str, ...]
    message: str
    action: str

    def __post_init__(self) -> None:
        """Check code and severity.

        Raises:
            ValueError: the code is not in the catalog, or the severity is unknown.
        """
        if self.code not in CATALOG:
            raise ValueError(f"finding {self.code!r} is not in the catalog")
        if self.severity not in SEVERITIES:
            raise ValueError(f"finding {self.code}: unknown severity {self.severity!r}")

    @property
    def definition(self) -> Definition:
        """Entry of the catalog: cause and usual cure."""
        return CATALOG[self.code]

    def __str__(self) -> str:
        """The finding as one line; see `format_finding`."""
        return format_finding(self)

    @classmethod
    def from_summary(cls, summary: Mapping[str, Any]) -> Finding:
        """The finding of a summary.

        Raises:
            ValueError: the code or the severity is unknown.
            KeyError: an entry is missing.
        """
        return cls(
            str(summary["code"]),
            summary["severity"],
            tuple(map(str, summary["joints"])),
            str(summary["message"]),
            str(summary["action"]),
        )

    def summary(self) -> dict[str, Any]:
        """The finding as `--json` and `report.json` hold it."""
        return {
            "code": self.code,
            "severity": self.severity,
            "joints": list(self.joints),
            "message": self.message,
            "action": self.action,
        }


def make_finding(
    code: str,
    message: str,
    joints: Iterable[str] = (),
    severity: Severity | None = None,
    action: str | None = None,
) -> Finding:
    """Make a finding of the catalog.

    Args:
        code: key of `CATALOG`, as a literal: a test compares the literals in the package with the catalog.
        message: what was found and where, in one line, without advice.
        joints: names of the joints that it concerns.
        severity: severity if it differs from that of the catalog.
        action: action if it differs from the cure of the catalog.

    Raises:
        ValueError: the code is not in the catalog.
    """
    if code not in CATALOG:
        raise ValueError(f"finding {code!r} is not in the catalog")
    entry = CATALOG[code]
    return Finding(code, severity or entry.severity, tuple(joints), message, entry.cure if action is None else action)


def format_finding(finding: Finding) -> str:
    """One line of text: message and action, as `warnings`, `reasons`, logs and the command line show a finding."""
    return f"{finding.message}; {finding.action}" if finding.action else finding.message


def format_findings(findings: Iterable[Finding], *severities: Severity) -> tuple[str, ...]:
    """The findings of these severities (default: all) as lines of text."""
    return tuple(format_finding(one) for one in findings if not severities or one.severity in severities)


_CAUSES = frozenset({"joints_assumed_fixed", "joints_unknown"})
"""Information that may explain errors."""


def rank_findings(
    findings: Iterable[Finding], decisive: Collection[str] = (), concerning: Collection[str] = ()
) -> list[list[Finding]]:
    """Findings by code, the most useful first: errors, warnings, information, and each of them from cause to effect.

    The sections of the catalog are in that order: faults of the recordings explain what follows, so that correcting
    them comes first. Information is led by the codes that decide about a use, and in the presence of errors by what was
    assumed about the recordings; codes that concern a use follow, then all others, and what needs no action comes last.

    Args:
        findings: the findings.
        decisive: codes that answers about uses rest on.
        concerning: further codes that may lower answers about uses.

    Returns:
        The findings of each code and severity, in their order.
    """
    groups: dict[tuple[str, Severity], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.code, one.severity), []).append(one)
    place = {code: number for number, code in enumerate(CATALOG)}
    failed = any(one.severity == "error" for group in groups.values() for one in group)

    def rank(group: Sequence[Finding]) -> tuple[int, bool, bool, bool, int]:
        one = group[0]
        cause = failed and one.code in _CAUSES and bool(one.action)
        later = one.severity == "info" and one.code not in decisive and not cause
        apart = later and one.code not in concerning
        return -SEVERITIES.index(one.severity), later, not one.action, apart, place[one.code]

    return sorted(groups.values(), key=rank)


def summarize_findings(findings: Iterable[Finding]) -> dict[str, list[Any]]:
    """The entries `findings` and `warnings` of a `--json` answer."""
    findings = tuple(findings)
    return {"findings": [one.summary() for one in findings], "warnings": list(format_findings(findings))}


def format_spans(spans: Iterable[tuple[float, float]]) -> str:
    """Spans of time [s] as text: `from 0.0 to 5.0 s, from 34.2 to 128.0 s`."""
    return ", ".join(f"from {start:.1f} to {stop:.1f} s" for start, stop in spans)


def format_shares(shares: Iterable[tuple[str, float]]) -> str:
    """Named ratios as text: `elbow velocity 12%, wrist position 7%`."""
    return ", ".join(f"{name} {share:.0%}" for name, share in shares)


def format_counts(counts: Mapping[str, int]) -> str:
    """Counts by reason as text: `12 velocity missing or not finite, 3 time stamp repeated`."""
    return ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))


_HEAD = """# Findings

Made from the catalog in `robot_dyn_id/findings.py`; do not edit (`python -m robot_dyn_id.findings > docs/findings.md`).

Everything that the package reports about data or a model is a finding with a stable code. `findings` of `--json`,
`report.json` and the ROS message `IdentificationReport` hold code, severity, joints, message and action of each;
`warnings` and `reasons` hold the same as text.

| severity | meaning |
|---|---|
| error | the data are refused (exit code 3), or the verdict is `bad` (exit code 1) |
| warning | the verdict is at best `suspect` |
| info | the verdict does not depend on it |

A finding that refuses data and is marked *may be overruled* becomes a warning if its code is listed under `ignore:` in
the configuration.
"""


def write_markdown() -> str:
    """The page `docs/findings.md`."""
    lines = [_HEAD]
    for section, entries in SECTIONS.items():
        lines += [f"## {section}", "", "| code | severity | cause | cure |", "|---|---|---|---|"]
        for code, entry in entries.items():
            severity = f"{entry.severity}, may be overruled" if entry.overrulable else entry.severity
            cure = f"{entry.cure[0].upper()}{entry.cure[1:]}." if entry.cure else "None needed."
            lines.append(f"| `{code}` | {severity} | {entry.cause} | {cure} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(write_markdown(), end="")
