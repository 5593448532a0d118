-- The engine numbers each stream record by MAX(CAST(sequence_number AS INTEGER)) over all records of its table, and
-- reads a page of them by the same expression. It has no index for either. This one covers DescribeStream too.
DROP INDEX IF EXISTS stream_by_sequence;
CREATE INDEX stream_by_sequence
  ON _stream_records (table_name, CAST(sequence_number AS INTEGER), shard_id, sequence_number);

-- The engine never deletes a stream record; DynamoDB keeps one for 24 hours. Each new record deletes the two oldest
-- of its table once they are older than that. The newest one stays, because the next number follows from it.
DROP TRIGGER IF EXISTS stream_retention;
CREATE TRIGGER stream_retention AFTER INSERT ON _stream_records BEGIN
  DELETE FROM _stream_records WHERE created_at < NEW.created_at - 24 * 60 * 60 AND id IN (
    SELECT id FROM _stream_records WHERE table_name = NEW.table_name
    ORDER BY CAST(sequence_number AS INTEGER) LIMIT 2
  );
END;
