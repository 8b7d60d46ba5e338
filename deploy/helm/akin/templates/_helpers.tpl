{{- define "akin.selector" -}}
app.kubernetes.io/name: akin
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "akin.labels" -}}
{{ include "akin.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
