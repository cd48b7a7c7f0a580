#!/usr/bin/python3
"""Stands in for a Kubernetes API server, as far as `kubectl get pods` asks one: kubernetes_api_stand_in.py PORT_FILE PODS_FILE

Lists the pods of PODS_FILE, "NAME IP PHASE" a line, with "Terminating" behind one that is being deleted. All have the label app=workers. It writes the port
that it listens at into PORT_FILE.
"""
import http.server
import json
import os
import sys
import urllib.parse


def pod(name, address, phase, *ending):
    meta = {"name": name, "namespace": "default", "labels": {"app": "workers"}}
    if ending:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": {}, "status": {"phase": phase, "podIP": address}}


class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        asked = urllib.parse.parse_qs(url.query)
        fields = dict(one.split("=") for one in asked.get("fieldSelector", [""])[0].split(",") if one)
        if url.path == "/api":
            answer = {"kind": "APIVersions", "versions": ["v1"]}
        elif url.path == "/apis":
            answer = {"kind": "APIGroupList", "apiVersion": "v1", "groups": []}
        elif url.path == "/api/v1":
            pods = {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "list"]}
            answer = {"kind": "APIResourceList", "groupVersion": "v1", "resources": [pods]}
        elif url.path == "/api/v1/namespaces/default/pods" and asked.get("labelSelector") == ["app=workers"]:
            with open(sys.argv[2]) as pods:
                items = [pod(*line.split()) for line in pods if line.strip()]
            items = [one for one in items if fields.get("status.phase") in (None, one["status"]["phase"])]
            answer = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}
        else:
            return self.send_error(404)
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
with open(sys.argv[1] + ".new", "w") as port:
    port.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
