"""The wire: what Lance stores as protobuf messages and fixed tables, as frozen dataclasses."""
