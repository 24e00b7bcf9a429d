import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataOperations;
import org.apache.iceberg.Files;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.util.SnapshotUtil;

/**
 * The talk's listing, timed: collect the files that append snapshots added, and append each to a new table.
 *
 * <p>Arguments: the catalog's name, its JDBC address, the warehouse; then, for each run, the table, the snapshot
 * before the range, its last one, and how many files it adds. Prints the seconds of each run on a line of its own.
 */
public class Listing {
  private static final TableIdentifier TARGET = TableIdentifier.of("bench", "listing");

  public static void main(String[] arguments) throws Exception {
    try (JdbcCatalog catalog = new JdbcCatalog()) {
      catalog.initialize(
          arguments[0],
          Map.of(
              "uri", arguments[1],
              "warehouse", arguments[2],
              "jdbc.schema-version", "V1",
              "io-impl", LocalFiles.class.getName()));
      for (int i = 3; i < arguments.length; i += 4) {
        long after = Long.parseLong(arguments[i + 1]);
        long upto = Long.parseLong(arguments[i + 2]);
        long expected = Long.parseLong(arguments[i + 3]);
        long began = System.nanoTime();
        long files = capture(catalog, TableIdentifier.parse(arguments[i]), after, upto);
        double seconds = (System.nanoTime() - began) / 1e9;
        if (files != expected) {
          throw new IllegalStateException(files + " of " + expected + " files appended");
        }
        System.out.println(seconds);
        // Not a purge: the data files are the source's.
        catalog.dropTable(TARGET, false);
        System.gc();
      }
    }
  }

  @SuppressWarnings("deprecation") // as in the talk
  private static long capture(Catalog catalog, TableIdentifier name, long after, long upto) {
    Table source = catalog.loadTable(name);
    List<Snapshot> snapshots =
        StreamSupport.stream(
                SnapshotUtil.ancestorsBetween(source, upto, after).spliterator(), false)
            .filter(snapshot -> snapshot.operation().equals(DataOperations.APPEND))
            .collect(Collectors.toList());
    Table target = catalog.createTable(TARGET, source.schema(), source.spec());
    AppendFiles append = target.newAppend();
    long files = 0;
    for (Snapshot snapshot : snapshots) {
      for (DataFile file : snapshot.addedDataFiles(source.io())) {
        append.appendFile(file);
        files++;
      }
    }
    append.commit();
    return files;
  }

  /** Plain local files: no Hadoop, and no checksums, to be as fast as Java can be. */
  public static class LocalFiles implements FileIO {
    @Override
    public InputFile newInputFile(String path) {
      return Files.localInput(path);
    }

    @Override
    public OutputFile newOutputFile(String path) {
      return Files.localOutput(path);
    }

    @Override
    public void deleteFile(String path) {
      new java.io.File(path).delete();
    }
  }
}
