# mcpgreen as an image that serves /project over HTTP. With your own tools:
#
#   FROM mcpgreen
#   COPY my-server /project
#
# Clients need a token: set MCPGREEN_HTTP_TOKEN, or the server refuses to start.

FROM python:3.13-slim AS build
WORKDIR /src
COPY setup.py pyproject.toml README.md ./
COPY mcpgreen mcpgreen
COPY project project
COPY docs/mcpgreen.1 docs/
COPY scripts/installed scripts/installed
ARG EXTRAS=metrics,oauth
RUN python -m venv /opt/mcpgreen \
    && /opt/mcpgreen/bin/pip install --no-cache-dir ".[$EXTRAS]"
# The health check fails if the server does not answer, or is stopping.
RUN printf '%s\n' '#!/opt/mcpgreen/bin/python -I' \
        'import sys, urllib.request' \
        'port = sys.argv[1] if sys.argv[1:] else "8808"' \
        'urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2)' \
        > /opt/mcpgreen/bin/mcpgreen-healthy \
    && chmod 755 /opt/mcpgreen/bin/mcpgreen-healthy

FROM python:3.13-slim
COPY --from=build /opt/mcpgreen /opt/mcpgreen
COPY project /project
ENV PATH=/opt/mcpgreen/bin:$PATH \
    MCPGREEN_PROJECT_ROOT=/project \
    MCPGREEN_REGISTRY_DIR=/tmp/registry
WORKDIR /project
# Neither root nor a user of the host. Scripts belong to root, so that no script can change another.
USER 10001:10001
EXPOSE 8808
HEALTHCHECK --interval=10s --timeout=3s CMD ["mcpgreen-healthy"]
ENTRYPOINT ["mcpgreen"]
CMD ["serve", "--http", "0.0.0.0:8808"]
