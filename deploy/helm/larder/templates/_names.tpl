{{- define "larder.name" -}}
{{- /* Kubernetes appends to the name of a StatefulSet; its pods' labels have 63 characters. */ -}}
{{- if contains "larder" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-larder" (.Release.Name | trunc 45 | trimSuffix "-") }}{{ end }}
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

{{- define "larder.https" -}}
{{- if or (hasKey .Values.secrets "server-tls-cert") (dig "server" "tls-cert" "" .Values.settings) }}true{{ end -}}
{{- end }}

{{- define "larder.scheme" -}}
{{ include "larder.https" . | empty | ternary "HTTP" "HTTPS" }}
{{- end }}

{{- /* Whether the storage is PostgreSQL and S3, in the place of a volume. */ -}}
{{- define "larder.isShared" -}}
{{- if or (gt (int .Values.replicas) 1) .Values.postgres.url .Values.s3.bucket .Values.redis.addrs }}true{{ end -}}
{{- end }}

{{- /* The options whose value is the path of a file. The others in `secrets` have a twin -file. */ -}}
{{- define "larder.pathOptions" -}}
cache-secret-key-path cache-upstream-ca-file netrc-file server-tls-cert server-tls-key
{{- end }}

{{- define "larder.secretOptions" -}}
cache-admin-token cache-database-password cache-get-token cache-put-token cache-redis-password cache-storage-s3-access-key-id cache-storage-s3-secret-access-key
{{- end }}

{{- define "larder.args" -}}
- serve
- --config=/etc/larder/config.yaml
- --server-addr=:8501
{{- if not (dig "cache" "hostname" "" .Values.settings) }}
- --cache-hostname={{ .Values.ingress.enabled | ternary .Values.ingress.host (include "larder.name" .) }}
{{- end }}
{{- if include "larder.isShared" . }}
- --cache-database-url={{ .Values.postgres.url }}
- --cache-storage-s3-bucket={{ .Values.s3.bucket }}
{{- with .Values.s3.endpoint }}
- --cache-storage-s3-endpoint={{ . }}
{{- end }}
{{- with .Values.s3.region }}
- --cache-storage-s3-region={{ . }}
{{- end }}
{{- if .Values.s3.forcePathStyle }}
- --cache-storage-s3-force-path-style=true
{{- end }}
- --cache-redis-addrs={{ join "," .Values.redis.addrs }}
- --cache-advertise-url={{ include "larder.scheme" . | lower }}://$(POD_NAME).{{ include "larder.name" . }}-members:8501
- --server-drain-delay=5s
{{- end }}
{{- $paths := include "larder.pathOptions" . | splitList " " }}
{{- range $option, $_ := .Values.secrets }}
- --{{ $option }}{{ if not (has $option $paths) }}-file{{ end }}=/run/larder/{{ $option }}
{{- end }}
{{- end }}
