"""The service, room by room, each importing only rooms further down: cli, api, assistants, pipeline, citing, index and models,
text, core. `report` is the frame of HTML reports and imports none of them.
"""
