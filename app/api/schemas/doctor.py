"""What an examination of the store found."""

from collections.abc import Sequence

from pydantic import Field

from app.api.schemas import ResponseBody
from app.domain.health import Checked, Status, worst


class FaultResponse(ResponseBody):
    status: Status
    what: str = Field(description="What is wrong and, where no repair helps, what to do.")
    where: str = Field(description="Collection, index, job, file or folder.")
    repair: str | None = Field(description="What `bifocal doctor --repair` would do; null: it cannot help.")


class CheckResponse(ResponseBody):
    name: str = Field(examples=["base-files"])
    status: Status
    looked_at: str = Field(description="What was examined.")
    is_complete: bool = Field(description="False: there was no time for all of it.")
    faults: list[FaultResponse]


class DoctorResponse(ResponseBody):
    status: Status = Field(
        description="The worst of all checks. A warning is nothing that answers suffer from."
    )
    checks: list[CheckResponse]

    @classmethod
    def of(cls, checks: Sequence[Checked]) -> "DoctorResponse":
        return cls(status=worst(tuple(checks)), checks=[_check(check) for check in checks])


def _check(check: Checked) -> CheckResponse:
    return CheckResponse(
        name=check.name,
        status=check.status,
        looked_at=check.looked_at,
        is_complete=check.is_complete,
        faults=[
            FaultResponse(
                status="warning" if fault.is_warning else "problem",
                what=fault.what,
                where=fault.where,
                repair=fault.remedy.value if fault.remedy else None,
            )
            for fault in check.faults
        ],
    )
