# SPDX-License-Identifier: Apache-2.0
# A machine without ROS 2: the README's two commands do the complete setup. This image has never been built: the tests have no Docker daemon.
#   docker build -t robot_dyn_id . && docker run --rm -it robot_dyn_id robot-dyn-id --help
#   docker run --rm -v "$PWD:/data" -w /data robot_dyn_id robot-dyn-id identify recording.mcap --robot arm.urdf --out run
FROM ubuntu:24.04
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        build-essential python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY . /opt/robot_dyn_id
WORKDIR /opt/robot_dyn_id
RUN make demo && .venv/bin/robot-dyn-id try franka && rm -rf runs franka
ENV PATH=/opt/robot_dyn_id/.venv/bin:$PATH
CMD ["robot-dyn-id", "--help"]
