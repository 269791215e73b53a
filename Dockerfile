# Themis with what reads models, tables and services: docker build -t themis .
# docker run --rm -v "$PWD:/work" --user "$(id -u)" themis check
# docker run --rm -v "$PWD:/work" --user "$(id -u)" --network host themis ui --no-open --port 8765
# The page listens on 127.0.0.1 only, so that it needs the network of a Linux host.
FROM python:3.12-slim
COPY pyproject.toml README.md LICENSE /source/
COPY src /source/src
RUN pip install --no-cache-dir "/source[all]" && rm -r /source
RUN useradd --create-home themis
USER themis
WORKDIR /work
ENTRYPOINT ["themis"]
