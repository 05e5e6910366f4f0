# The command `mews` with the extra `cluster` in an image. `make image` makes build/image/wheels and calls `docker build`:
# nothing is fetched here. BASE needs python3 >= 3.11 with venv and pip, a shell and useradd.
ARG BASE=python:3.12-slim
FROM ${BASE} AS made
COPY build/image/wheels /wheels
RUN python3 -m venv --without-pip /opt/mews \
 && python3 -m pip --python /opt/mews/bin/python install --no-index --no-compile --no-cache-dir --find-links /wheels "falcon-mews[cluster]" \
 && /opt/mews/bin/python -m compileall -q /opt/mews/lib/python3*/site-packages/mews \
 && find /opt/mews -type d -name tests -prune -exec rm -rf {} +

FROM ${BASE}
COPY --from=made /opt/mews /opt/mews
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin mews
ENV PATH=/opt/mews/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PYTHONUNBUFFERED=1 GRPC_VERBOSITY=NONE
USER 10001
WORKDIR /home/mews
ENTRYPOINT ["mews"]
CMD ["--help"]
