{{- define "larder.name" -}}
{{- if contains "larder" .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-larder" .Release.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "larder.selector" -}}
app.kubernetes.io/name: larder
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "larder.labels" -}}
{{ include "larder.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "larder.scheme" -}}
{{ dig "server" "tls-cert" "" (.Values.settings | default dict) | empty | ternary "HTTP" "HTTPS" }}
{{- end }}
