# An image that starts the practice page:
#   docker build --build-arg UID=$(id -u) -t trainwreck .
#   mkdir -p work
#   docker run --rm -it --network host -v "$PWD/work:/home/student/trainwreck/work" trainwreck
# The page listens only on 127.0.0.1, so the container uses the network of the host. Your work stays in the folder work/.
# On a Mac with an Apple chip, Docker emulates x86-64, so that runs give the same bytes.
FROM --platform=linux/amd64 python:3.11-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/*
ARG UID=1000
RUN useradd --create-home --uid "$UID" student
USER student
WORKDIR /home/student/trainwreck
# The Python environment is outside the folder of the project. The extra index makes pip choose the CPU build of PyTorch.
ENV MAKEFLAGS="VENV=/home/student/.venv" \
    PATH="/home/student/.venv/bin:$PATH" \
    PIP_EXTRA_INDEX_URL="https://download.pytorch.org/whl/cpu"
COPY --chown=student . .
RUN make /home/student/.venv/.installed
CMD ["harness", "serve", "--no-browser"]
