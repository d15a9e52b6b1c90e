# The image of a fleet (docs/fleet.md): the same one for hubs and for the pods of sessions. It is the agents' image with
# Hitchpost in it. From the top of the repository:
#   docker build -t hitchpost-agent docker/
#   .venv/bin/python -m hatchling build -t wheel
#   docker build -t hitchpost -f docker/fleet.Dockerfile .
# Other agents, compilers and tools belong into an image of yours: FROM hitchpost.
ARG AGENTS=hitchpost-agent
FROM ${AGENTS}

RUN apt-get update \
    && apt-get install -y --no-install-recommends python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/hitchpost

# Packages come with the digests of the lock, and Hitchpost itself from here.
COPY requirements/pip.txt requirements/fleet.txt /opt/hitchpost/
COPY dist/hitchpost-*.whl /opt/hitchpost/
RUN /opt/hitchpost/bin/pip --no-cache-dir install --require-hashes -r /opt/hitchpost/pip.txt \
    && /opt/hitchpost/bin/pip --no-cache-dir install --require-hashes -r /opt/hitchpost/fleet.txt \
    && /opt/hitchpost/bin/pip --no-cache-dir install --no-deps /opt/hitchpost/hitchpost-*.whl
ENV PATH=/opt/hitchpost/bin:$PATH

# Hubs and sessions run as this user, without rights; their files are on volumes.
RUN usermod --login agent --home /home/agent --move-home node && groupmod --new-name agent node \
    && install -d -o agent -g agent /workspace
USER 1000
CMD ["hitch", "--version"]
