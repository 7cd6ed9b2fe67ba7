{{- /* What no schema can say. Each failure says what was given, and what was expected. */ -}}
{{- define "larder.check" -}}
{{- if hasKey .Values "replicaCount" }}
  {{- fail (printf "replicaCount=%v was given, which this chart does not have: give replicas=%v" .Values.replicaCount .Values.replicaCount) }}
{{- end }}
{{- if include "larder.isShared" . }}
  {{- $missing := list }}
  {{- if not .Values.postgres.url }}{{ $missing = append $missing "postgres.url" }}{{ end }}
  {{- if not .Values.s3.bucket }}{{ $missing = append $missing "s3.bucket" }}{{ end }}
  {{- if not .Values.redis.addrs }}{{ $missing = append $missing "redis.addrs" }}{{ end }}
  {{- if $missing }}
    {{- fail (printf "replicas=%v was given without %s: several larders need postgres.url, s3.bucket and redis.addrs; one larder on a volume needs replicas=1 and none of them" .Values.replicas (join ", " $missing)) }}
  {{- end }}
  {{- if .Values.persistence.existingClaim }}
    {{- fail (printf "persistence.existingClaim=%s was given beside s3.bucket=%s: larders that share a bucket have no volume; leave one of both out" .Values.persistence.existingClaim .Values.s3.bucket) }}
  {{- end }}
  {{- if has (dig "cache" "max-size" "" .Values.settings) (list "" "auto" nil) }}
    {{- fail (printf "s3.bucket=%s was given without settings.cache.max-size, or with auto: a bucket has no end by itself; give a size such as 500G, or unlimited" .Values.s3.bucket) }}
  {{- end }}
{{- end }}
{{- if and (gt (int .Values.replicas) 1) (ge (int .Values.podDisruptionBudget.maxUnavailable) (int .Values.replicas)) }}
  {{- fail (printf "podDisruptionBudget.maxUnavailable=%v was given with replicas=%v: a drain of nodes could stop all at once; give less than replicas" .Values.podDisruptionBudget.maxUnavailable .Values.replicas) }}
{{- end }}
{{- $limit := dig "cache" "max-size" "" .Values.settings | toString }}
{{- if and (not (include "larder.isShared" .)) (not .Values.persistence.existingClaim) (regexMatch "^[0-9.]+ *[A-Za-z]*$" $limit) }}
  {{- if ge (include "larder.bytes" (dict "size" $limit "unit" 1024) | float64) (include "larder.bytes" (dict "size" .Values.persistence.size "unit" 1000) | float64) }}
    {{- fail (printf "settings.cache.max-size=%s was given with persistence.size=%s: the volume would be full first; give less than the volume, or leave max-size out" $limit .Values.persistence.size) }}
  {{- end }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled (not (dig "prometheus" "enabled" false .Values.settings)) }}
  {{- fail "serviceMonitor.enabled=true was given, but settings.prometheus.enabled is not true: then larder has no /metrics" }}
{{- end }}
{{- if and .Values.prometheusRule.enabled (not (dig "prometheus" "enabled" false .Values.settings)) }}
  {{- fail "prometheusRule.enabled=true was given, but settings.prometheus.enabled is not true: then larder has no /metrics for the alerts" }}
{{- end }}
{{- if and .Values.ingress.enabled (not (dig "server" "trusted-proxies" list .Values.settings)) }}
  {{- fail "ingress.enabled=true was given without settings.server.trusted-proxies: larder would take the ingress for the one client of all; give the addresses of the ingress's pods, such as [10.244.0.0/16]" }}
{{- end }}
{{- if and .Values.service.externalTrafficPolicy (eq .Values.service.type "ClusterIP") }}
  {{- fail (printf "service.externalTrafficPolicy=%s was given, which service.type=ClusterIP does not have: give service.type=LoadBalancer or NodePort, or leave it out" .Values.service.externalTrafficPolicy) }}
{{- end }}
{{- $token := .Values.serviceMonitor.tokenSecret }}
{{- if and .Values.serviceMonitor.enabled (hasKey .Values.secrets "cache-get-token") (not $token.name) }}
  {{- fail "serviceMonitor.enabled=true was given with secrets.cache-get-token, but without serviceMonitor.tokenSecret: reading needs a token, which Prometheus must send" }}
{{- end }}
{{- if ne (empty $token.name) (empty $token.key) }}
  {{- fail (printf "serviceMonitor.tokenSecret has name=%q and key=%q: give both, or none" $token.name $token.key) }}
{{- end }}
{{- if and (hasKey .Values.secrets "server-tls-cert") (not (hasKey .Values.secrets "server-tls-key")) }}
  {{- fail "secrets.server-tls-cert was given without secrets.server-tls-key: a certificate needs its key" }}
{{- end }}
{{- include "larder.checkPlain" (dict "root" . "path" "postgres.url" "given" .Values.postgres.url) }}
{{- include "larder.checkPlain" (dict "root" . "path" "settings" "given" .Values.settings) }}
{{- end }}

{{- /* The bytes of a size. `unit`: of letters without an i, 1024 for larder, 1000 for Kubernetes. */ -}}
{{- define "larder.bytes" -}}
{{- $letters := regexFind "[A-Za-z]+$" .size | lower }}
{{- $unit := contains "i" $letters | ternary 1024 .unit }}
{{- $bytes := regexFind "^[0-9.]+" .size | float64 }}
{{- range until (get (dict "k" 1 "m" 2 "g" 3 "t" 4 "p" 5 "e" 6) (trunc 1 $letters) | default 0 | int) }}
  {{- $bytes = mulf $bytes $unit }}
{{- end }}
{{- printf "%.0f" $bytes }}
{{- end }}

{{- /* Fails for a secret in `settings` or in a URL: a ConfigMap and arguments hide nothing. */ -}}
{{- define "larder.checkPlain" -}}
{{- $root := .root }}
{{- $path := .path }}
{{- $given := .given }}
{{- $option := trimPrefix "settings." $path | replace "." "-" }}
{{- $secrets := include "larder.secretOptions" $root | splitList " " }}
{{- if has $option $secrets }}
  {{- fail (printf "%s was given as plain text, which a ConfigMap shows: give secrets.%s the name and the key of a Secret" $path $option) }}
{{- end }}
{{- if kindIs "map" $given }}
  {{- range $key, $value := $given }}
    {{- include "larder.checkPlain" (dict "root" $root "path" (printf "%s.%s" $path $key) "given" $value) }}
  {{- end }}
  {{- if eq $path "settings" }}
    {{- $flags := list }}
    {{- if include "larder.isShared" $root }}
      {{- $flags = list "cache-database-url" "cache-storage-s3-bucket" "cache-storage-s3-endpoint" "cache-storage-s3-region" "cache-storage-s3-force-path-style" "cache-redis-addrs" "cache-advertise-url" }}
    {{- end }}
    {{- include "larder.checkTwice" (dict "path" "settings" "given" $given "flags" (concat (list "server-addr") $flags (keys $root.Values.secrets))) }}
  {{- end }}
{{- else if kindIs "slice" $given }}
  {{- range $value := $given }}
    {{- include "larder.checkPlain" (dict "root" $root "path" (printf "%s[]" $path) "given" $value) }}
  {{- end }}
{{- else if kindIs "string" $given }}
  {{- if regexMatch "://[^/?#@]*:[^/?#@]+@" $given }}
    {{- fail (printf "%s was given with a password in its URL: give the password by secrets" $path) }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* Fails for an option in `settings` that an argument of the chart would silently overrule. */ -}}
{{- define "larder.checkTwice" -}}
{{- $path := .path }}
{{- $flags := .flags }}
{{- range $key, $value := .given }}
  {{- $at := printf "%s.%s" $path $key }}
  {{- if kindIs "map" $value }}
    {{- include "larder.checkTwice" (dict "path" $at "given" $value "flags" $flags) }}
  {{- else if has (trimPrefix "settings." $at | replace "." "-") $flags }}
    {{- fail (printf "%s was given, but the chart gives this option by other values: postgres, s3, redis, service or secrets" $at) }}
  {{- end }}
{{- end }}
{{- end }}
