// Runs storage.sql on a data file that no engine has open, and marks the file with a version.
// Usage: node prepare.js <data file> <version>
const { readFileSync, rmSync } = require("node:fs");
const { join } = require("node:path");
const { Database } = require("node-sqlite3-wasm");

const [path, version] = process.argv.slice(2);
try {
  rmSync(`${path}.lock`, { recursive: true, force: true }); // A killed process leaves its lock behind.
  const database = new Database(path);
  // There is no shared memory here. Without it, SQLite opens a file in WAL mode only under an exclusive lock.
  database.exec("PRAGMA locking_mode = EXCLUSIVE");
  const sql = readFileSync(join(__dirname, "storage.sql"), "utf8");
  database.exec(`BEGIN; ${sql} PRAGMA user_version = ${version}; COMMIT`);
  database.close();
} catch (error) {
  console.error(`prepare the database ${path}: ${error.message}`);
  process.exit(1);
}
