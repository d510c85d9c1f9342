#include "core/catalog/messages.hpp"

#include <array>

namespace holdfast {
namespace {

// In the order of the variants.
constexpr std::array kWorkerNames = {
    "Publish",     "AskUnpublish", "AskFetch",    "AskCancel", "AskWithdraw", "AskRetain",
    "AskRelease",  "AskInstalled", "AskLineage",  "AskLeave",  "CallEnded",   "Cleared",
    "ClearFailed", "Granted",      "GrantsGone",  "Progress",  "Filled",      "TransferStopped",
    "Switched",    "ParentWanted", "SourceIsSlow"};
constexpr std::array kCoordinatorNames = {
    "Answer",   "Decided", "FetchDone", "GenerationIs", "Clear", "Unhide", "GrantReads",
    "EndReads", "Begin",   "Change",    "Stop",         "Tell",  "Note",   "LeaveNow"};
static_assert(kWorkerNames.size() == std::variant_size_v<WorkerMessage>);
static_assert(kCoordinatorNames.size() == std::variant_size_v<CoordinatorMessage>);

}  // namespace

const char* name_of(const WorkerMessage& message) {
  return kWorkerNames[message.index()];
}
const char* name_of(const CoordinatorMessage& message) {
  return kCoordinatorNames[message.index()];
}

}  // namespace holdfast
