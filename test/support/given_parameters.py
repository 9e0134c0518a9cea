# SPDX-License-Identifier: Apache-2.0
"""Parameter sets of any robot with given parameters."""

from dataclasses import replace

import numpy as np

from robot_dyn_id.dynamics.base_parameters import compute_base_parameters
from robot_dyn_id.dynamics.consistency import convert_to_parameters, is_consistent, pseudo_inertia
from robot_dyn_id.dynamics.regressor import Regressor, place_terms_on_joints
from robot_dyn_id.dynamics.stored_terms import list_states, list_stored_constants
from robot_dyn_id.model.robot import RobotModel
from robot_dyn_id.parameters import IdentifiedRobot, Ranges, ResidualProfile, TermParameters, urdf_hash
from support.model_nodes import identified
from support.robots import STANDARD_GRAVITY


def heavier(model, seed=0):
    """Consistent bodies unlike the URDF's."""
    rng = np.random.default_rng(seed)
    bodies = []
    for pseudo in pseudo_inertia(model.inertial_parameters.reshape(-1, 10)):
        extra = rng.normal(size=(4, 6)) * np.array([[0.05], [0.05], [0.05], [0.5]])
        bodies.append(convert_to_parameters(1.3 * pseudo + extra @ extra.T))
    return np.concatenate(bodies)


def parameter_set(text, joints=None, held=None, terms=(), values=None, inertial=None, gravity=STANDARD_GRAVITY):
    """A set with given parameters, the other fields from an earlier identification."""
    model = RobotModel.from_urdf(text, joints=joints, held=held, gravity=gravity)
    regressor = Regressor(model, place_terms_on_joints(model, terms))
    base = compute_base_parameters(regressor)
    inertial = heavier(model) if inertial is None else inertial
    columns, n = regressor.term_columns, len(model.joint_names)
    values = np.arange(1.0, 1.0 + len(columns)) if values is None else values
    constants = list_stored_constants(regressor.terms, model.joint_names, model.body_names)
    p = len(base.names)
    known = identified()
    return replace(
        known,
        robot=IdentifiedRobot(
            name=model.name,
            urdf=model.urdf,
            urdf_sha256=urdf_hash(model.urdf),
            joint_names=model.joint_names,
            held_joint_names=tuple(model.held),
            held_joint_positions=np.array(list(model.held.values())),
            gravity=model.gravity,
            body_names=model.body_names,
        ),
        base=base,
        estimate=replace(
            known.estimate,
            values=base.mapping @ np.append(inertial, values),
            standard_deviations=np.ones(p),
            status=("good",) * p,
            covariance=np.eye(p),
        ),
        bodies=replace(known.bodies, standard_parameters=inertial, physically_consistent=is_consistent(inertial)),
        terms=TermParameters(
            names=tuple(c.term.name for c in columns),
            joints=tuple(c.coordinate.name for c in columns),
            values=values,
            standard_deviations=np.ones(len(columns)),
            constant_names=tuple(name for name, _, _ in constants),
            constant_joints=tuple(at for _, at, _ in constants),
            constant_values=np.array([value for _, _, value in constants]),
            states=list_states(regressor.terms),
        ),
        ranges=Ranges(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)),
        residuals=ResidualProfile(np.zeros(0), np.zeros(0)),
        judgment=replace(known.judgment, held_out_nrmse=np.zeros(n)),
    )
