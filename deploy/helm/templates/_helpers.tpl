{{- define "docs-assistant.name" -}}
{{- if contains "docs-assistant" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-docs-assistant{{ end -}}
{{- end -}}

{{- define "docs-assistant.selector" -}}
app.kubernetes.io/name: docs-assistant
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "docs-assistant.labels" -}}
{{ include "docs-assistant.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* What the pods of the service and of the runs have in common. */}}
{{- define "docs-assistant.pod" -}}
automountServiceAccountToken: false
# no addresses of other Services in the environment
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: {}
  - name: data
    {{- if .Values.persistence.enabled }}
    persistentVolumeClaim:
      claimName: {{ .Values.persistence.existingClaim | default (include "docs-assistant.name" .) }}
    {{- else }}
    emptyDir: {}
    {{- end }}
  {{- if .Values.sources }}
  - name: sources
    configMap:
      name: {{ include "docs-assistant.name" . }}-sources
  {{- end }}
{{- end -}}

{{- define "docs-assistant.container" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
envFrom:
  - configMapRef:
      name: {{ include "docs-assistant.name" . }}
  {{- with .Values.secret }}
  - secretRef:
      name: {{ . }}
  {{- end }}
env:
  - name: HOME
    value: /tmp
  {{- if .Values.sources }}
  - name: DOCS_SOURCES
    value: /config/sources.toml
  {{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - name: data
    mountPath: /data
  - name: tmp
    mountPath: /tmp
  {{- if .Values.sources }}
  - name: sources
    mountPath: /config
    readOnly: true
  {{- end }}
{{- end -}}
