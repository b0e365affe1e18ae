"""Generated protobuf modules; ``tools/protos.py`` makes them and only ``lancelet.format`` imports them."""
