"""Lance tables on Apache Spark through PySpark. Importing this package imports neither PySpark nor a JVM."""
