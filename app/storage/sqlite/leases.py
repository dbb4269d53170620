"""The one worker's lease: who writes, and whether anyone does."""

from app.storage.sqlite.connection import Database
from app.storage.sqlite.lives import Life
from app.storage.sqlite.times import now_us


class LeaseRows:
    _database: Database
    _life: Life

    def worker_heartbeat(self, worker: str, *, lease_s: float) -> bool:
        is_taken = False
        dead = self._life.dead_before(worker)
        try:
            is_taken = self._take(worker, lease_s, dead)
        finally:
            if is_taken:
                self._life.begin(worker)
            else:
                self._life.forgo()
        return is_taken

    def worker_release(self, worker: str) -> None:
        with self._database.write() as connection:
            connection.execute("DELETE FROM leases WHERE noun = 'worker' AND holder = ?", (worker,))
        self._life.end(worker)

    def worker_alive(self) -> bool:
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT 1 FROM leases WHERE noun = 'worker' AND leased_until > ?", (now_us(),)
            ).fetchone()
        return row is not None

    def _take(self, worker: str, lease_s: float, dead: str | None) -> bool:
        """Take or renew the lease, at once from a dead worker, whose jobs may be claimed at once, too."""
        now = now_us()
        with self._database.write() as connection:
            taken = connection.execute(
                "INSERT INTO leases VALUES ('worker', :worker, :until) ON CONFLICT (noun) DO UPDATE "
                "SET holder = :worker, leased_until = :until "
                "WHERE holder IN (:worker, :dead) OR leased_until <= :now",
                {"worker": worker, "dead": dead, "until": now + round(lease_s * 1e6), "now": now},
            )
            if dead is not None:
                connection.execute(
                    "UPDATE jobs SET leased_until = :now WHERE worker = :dead AND state = 'running'",
                    {"now": now, "dead": dead},
                )
            return taken.rowcount == 1
