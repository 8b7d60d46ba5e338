{{/* The name of all objects: the release's with the chart's in it, so that they do
not clash with those of other charts of the release. */}}
{{- define "akin.name" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) }}
{{- .Values.fullnameOverride | default $name | trunc 44 | trimSuffix "-" }}
{{- end }}

{{- define "akin.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The labels of all objects but for the selector. */}}
{{- define "akin.about" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "akin.labels" -}}
{{ include "akin.selector" . }}
{{ include "akin.about" . }}
{{- end }}

{{- define "akin.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What the specifications of all pods share. */}}
{{- define "akin.pod" -}}
automountServiceAccountToken: false
{{- with .Values.serviceAccount }}
{{- if or .name .annotations }}
serviceAccountName: {{ .name | default (include "akin.name" $) }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- range $key := list "imagePullSecrets" "nodeSelector" "tolerations" "affinity" }}
{{- with index $.Values $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "akin.env" -}}
{{- with .Values.secretEnv }}
envFrom:
  - secretRef: {name: {{ . | quote }}}
{{- end }}
{{- with .Values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "akin.security" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* The volume with akin.yml and the files that it names. */}}
{{- define "akin.config" -}}
- name: config
  projected:
    defaultMode: 0440
    sources:
      - configMap: {name: {{ include "akin.name" . }}}
      {{- with .Values.secretFiles }}
      - secret: {name: {{ . | quote }}}
      {{- end }}
{{- end }}
