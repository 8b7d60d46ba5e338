# Only the static binary of akin: no shell, no package manager, not root.
#
#   make image
#   docker run -v ./akin.yml:/etc/akin/akin.yml:ro -p 9280:9280 akin
#
# In a container listen.address must be on all interfaces, such as ":9280".
# e2e/image_test.go runs the commands of the first stage on the files that
# .dockerignore lets in.

FROM golang:1.26 AS build
# The version in `akin --version`; a release sets it.
ARG VERSION=""
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# Go stamps a binary with the commit only if all of .git is there. A few small files
# of it, which .dockerignore lets in, have the name of the commit.
RUN ref=$(sed -n 's/^ref: //p' .git/HEAD); \
    commit=$(cat ".git/${ref:-HEAD}" || sed -n "s|^\([0-9a-f]*\) $ref\$|\1|p" .git/packed-refs); \
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags=nomsgpack -ldflags="-s -w -X main.version=$VERSION -X main.commit=$commit" -o /out/akin ./cmd/akin \
    && mkdir /out/data && cp LICENSE NOTICE /out/

# The static image has the certificates of public authorities and time zones.
FROM gcr.io/distroless/static-debian12
COPY --from=build /out/akin /usr/local/bin/akin
COPY --from=build /out/LICENSE /out/NOTICE /usr/share/doc/akin/
# A new volume mounted here gets this owner.
COPY --from=build --chown=65532:65532 /out/data /data
# A number, so that Kubernetes can verify that it is not root.
USER 65532:65532
WORKDIR /data
EXPOSE 9280 9281
ENTRYPOINT ["/usr/local/bin/akin"]
CMD ["serve", "--config", "/etc/akin/akin.yml"]
