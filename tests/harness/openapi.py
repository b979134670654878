"""Checks exchanges against a server's own /openapi.json."""
import json
import re

import jsonschema


def _schema_of(content, media):
    bare = media.split(";")[0].strip().lower()
    return content.get(bare, {}).get("schema") if "*/*" not in content else {}


class Document:
    """One OpenAPI 3.1 document."""

    def __init__(self, doc):
        self.doc = doc

    def errors(self, schema, value):
        """Complaints of JSON Schema 2020-12 about value; references resolve in the document."""
        root = {**schema, "components": self.doc.get("components", {})}
        validator = jsonschema.Draft202012Validator(root)
        return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}"
                for e in validator.iter_errors(value)]

    def resolve(self, node):
        while "$ref" in node:
            parts = node["$ref"].removeprefix("#/").split("/")
            node = self.doc
            for part in parts:
                node = node[part]
        return node

    def template_of(self, path):
        """The document's own path of which this is one. An id is one component, a path any number."""
        for template in self.doc["paths"]:
            pattern = re.escape(template).replace(r"\{id\}", "[0-9a-f]{32}").replace(r"\{path\}", ".+")
            if re.fullmatch(pattern, path):
                return template
        return path

    def response_complaints(self, method, path, answer):
        """What the document says against this answer."""
        path = self.template_of(path.split("?")[0])
        item = self.doc["paths"].get(path)
        if item is None:
            return [] if answer.status == 404 else [f"{path} is not in the document"]
        operation = item.get(method.lower())
        if operation is None:
            return [] if answer.status in (404, 405, 200) else [f"{method} {path} is not there"]
        response = operation["responses"].get(str(answer.status))
        if response is None:
            return [f"{method} {path} answered {answer.status}, which is not documented"]
        response = self.resolve(response)
        if "content" not in response:
            return []
        schema = _schema_of(response["content"], answer.headers.get("Content-Type", ""))
        if schema is None:
            return [f"{method} {path} {answer.status}: media type "
                    f"{answer.headers.get('Content-Type')!r} is not documented"]
        value = answer.json() if schema else None
        return [f"{method} {path} {answer.status}: {e}" for e in self.errors(schema, value)]

    def request_complaints(self, method, path, body):
        """What the document says against this request's body."""
        operation = self.doc["paths"][path][method.lower()]
        content = self.resolve(operation["requestBody"])["content"]
        return self.errors(content["application/json"]["schema"], body)

    def exchange_complaints(self, method, path, body, answer):
        """An accepted request must be valid by the document, and its answer too."""
        bad = self.response_complaints(method, path, answer)
        if answer.status == 200 and body and path == "/execute":
            bad += [f"accepted, but invalid by the document: {e}" for e in
                    self.request_complaints(method, path, json.loads(body))]
        return bad
