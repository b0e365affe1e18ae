"""Schemas as users handle them: fields with the ids that data files know them by, and schemas as JSON."""

from lancelet.schema.json import json_to_schema, schema_to_json
from lancelet.schema.lance_schema import LanceField, LanceSchema

__all__ = ["LanceField", "LanceSchema", "json_to_schema", "schema_to_json"]
