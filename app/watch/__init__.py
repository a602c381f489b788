"""What operators watch: the metrics of the service, filled by the routes and the calls to other servers.

Called by the API. It only reads: nothing in it changes an answer.
"""
