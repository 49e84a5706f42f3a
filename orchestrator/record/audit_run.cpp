#include "orchestrator/record/audit_run.hpp"

#include "orchestrator/record/best_audit.hpp"
#include "orchestrator/record/certificate_audit.hpp"
#include "orchestrator/record/outputs.hpp"
#include "orchestrator/record/summary_audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace temper::orchestrator {

Result<AuditReport> audit_run(const std::filesystem::path& run_dir) {
  const auto path = run_dir / "events.log";
  Auditor auditor;
  BestInLog best(run_dir);
  TEMPER_TRY(const LogSummary log,
             scan_event_log(path, [&](const Record& r, const LogPosition& behind) {
               auditor.feed(r);
               best.feed(r, behind);
               return Status();
             }));
  AuditReport report = auditor.report();
  if (report.records == 0) {
    return corrupt(fmt::format("{} holds no record to audit{}{}",
                               path.string(),
                               log.end.what.empty() ? "" : "; the log is ",
                               log.end.what));
  }
  report.log_end = log.end.what;
  std::vector<std::string>& wrong = report.violations;
  if (log.damaged())
    wrong.push_back(damage_error(path, log).context);
  const auto certificates =
      audit_certificates(run_dir / kCertificateFile, auditor.batches(), report);
  std::ranges::copy(certificates, std::back_inserter(wrong));
  std::ranges::copy(audit_times(run_dir / kSummaryFile, {report.tail, report.end}),
                    std::back_inserter(wrong));
  std::ranges::copy(check_outputs(run_dir, log), std::back_inserter(wrong));
  if (BestVerdict verdict = best.verify(); verdict.is_wrong())
    wrong.push_back(std::move(verdict.what));
  return report;
}

}  // namespace temper::orchestrator
