"""The one worker's lease: who writes, and whether anyone does."""

from app.storage.sqlite.connection import Database
from app.storage.sqlite.times import now_us


class LeaseRows:
    _database: Database

    def worker_heartbeat(self, worker: str, *, lease_s: float) -> bool:
        now = now_us()
        with self._database.write() as connection:
            taken = connection.execute(
                "INSERT INTO leases VALUES ('worker', :worker, :until) ON CONFLICT (noun) DO UPDATE "
                "SET holder = :worker, leased_until = :until WHERE holder = :worker OR leased_until <= :now",
                {"worker": worker, "until": now + round(lease_s * 1e6), "now": now},
            )
            return taken.rowcount == 1

    def worker_release(self, worker: str) -> None:
        with self._database.write() as connection:
            connection.execute("DELETE FROM leases WHERE noun = 'worker' AND holder = ?", (worker,))

    def worker_alive(self) -> bool:
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT 1 FROM leases WHERE noun = 'worker' AND leased_until > ?", (now_us(),)
            ).fetchone()
        return row is not None
