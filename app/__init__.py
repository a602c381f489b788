"""The service, room by room, each importing only rooms further down: cli, api, assistants, pipeline, citing, index and models,
text, core. `report` is the frame of HTML reports and imports none of them.
"""

import os

# This runs before all else of ours, in every process: libraries that send something about their use unless told not to read
# these when they are imported, ONNX Runtime the first and Evidently the second. What the environment says takes precedence.
for _name in ("ORT_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
    os.environ.setdefault(_name, "1")
