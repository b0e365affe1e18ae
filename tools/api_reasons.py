"""Why names of pylance are missing from lancelet, or lack parameters: the reasons that docs/api.md shows."""

from __future__ import annotations

VECTORS = "vector indexes: not landed"
TEXTS = "text indexes: not landed"
NAMESPACES = "namespaces: a catalogue's own protocol, out of scope; tables are opened by their URIs"
ACCELERATORS = "training on GPUs with PyTorch: vector indexes have not landed"
MEM_WAL = "writing through MemWAL: out of scope"
RUST = "of the Rust build: pointers and facts of its shared library"
INSIDE = "made by the library itself, never by users"
#: Why a name is missing or lacks parameters: the first pattern that fits ``module.name`` or ``module.Class.member``.
REASONS: tuple[tuple[str, str], ...] = (
    ("mem_wal*", MEM_WAL),
    ("CompactedSsTable*", MEM_WAL),
    ("ExecutionPlan*", MEM_WAL),
    ("Lsm*", MEM_WAL),
    ("ShardSnapshot*", MEM_WAL),
    ("ShardWriter*", MEM_WAL),
    ("Sharding*", MEM_WAL),
    ("evaluate_sharding_spec*", MEM_WAL),
    ("*mem_wal*", MEM_WAL),
    ("*MemWal*", MEM_WAL),
    ("namespace*", NAMESPACES),
    ("*namespace*", NAMESPACES),
    ("*.from_uri_via_namespace", NAMESPACES),
    ("BlobFile.inner", INSIDE),
    ("LanceBlobFile*", "what `BlobFile` wraps in the Rust build"),
    ("LanceScanner.scanner", INSIDE),
    ("FragmentSession.session", INSIDE),
    ("ReaderResults.reader", INSIDE),
    ("Session.store_registry", RUST),
    ("otel.*_lance_metrics*", RUST),
    ("FFILanceTableProvider*", RUST),
    ("simd_info", RUST),
    ("FtsToken*", TEXTS),
    ("tokenize", TEXTS),
    ("*tokenize*", TEXTS),
    ("*FullTextQuery*", TEXTS),
    ("*DocumentGranularity*", TEXTS),
    ("*MinHashQuery*", TEXTS),
    ("*.minhash_search", TEXTS),
    (
        "*.substrait_aggregate",
        "aggregates in Substrait: not landed; `LanceDataset.sql` and DuckDB aggregate over a dataset",
    ),
    ("query*", TEXTS),
    ("*full_text*", TEXTS),
    ("torch.bench_utils*", "pylance's own benchmarks"),
    ("torch.distance*", ACCELERATORS),
    ("torch.kmeans*", ACCELERATORS),
    ("vector.*_on_accelerator", ACCELERATORS),
    ("vector.compute_*", ACCELERATORS),
    ("vector.*", VECTORS),
    ("util.KMeans*", VECTORS),
    ("util.HNSW*", VECTORS),
    ("util.validate_vector_index", VECTORS),
    ("*Vector*", VECTORS),
    ("*vector*", VECTORS),
    ("*centroids*", VECTORS),
    ("*.get_ivf_model", VECTORS),
    ("indices.Ivf*", VECTORS),
    ("indices.Pq*", VECTORS),
    ("indices.IndicesBuilder*", VECTORS),
    ("*merge_index_metadata*", VECTORS),
    ("*index*", VECTORS),
    ("*indices*", VECTORS),
    ("LanceScanner.*_plan", "plans as text: not landed"),
)
