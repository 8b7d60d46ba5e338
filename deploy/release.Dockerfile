# The image of a release: like Dockerfile, but with the program of the release.
FROM gcr.io/distroless/static-debian12
ARG TARGETPLATFORM
COPY $TARGETPLATFORM/akin /usr/local/bin/akin
COPY LICENSE NOTICE /usr/share/doc/akin/
USER 65532:65532
EXPOSE 9280 9281
ENTRYPOINT ["/usr/local/bin/akin"]
CMD ["serve", "--config", "/etc/akin/akin.yml"]
