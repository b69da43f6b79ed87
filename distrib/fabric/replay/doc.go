// Package replay plays a job of many workers on a network whose links change, as MLfabric's
// evaluation does (mlfabric-2020, section 7): how long it takes to push updates and to get models,
// and what that makes of learning. Time is counted and not waited for; a job is the same each time.
//
// Links are drawn anew every few seconds, each way by itself, and a computation is slow by chance.
// The scheduler knows of links what it was told a while ago; transfers take what links really have,
// in the order that it gave them.
//
// What a job does to its model is a [Log]: which update was applied when, and which version it was
// computed from. Learning follows from it ([Log.Learn]): logistic regression whose gradients are
// taken at those versions, so that delays and dropped updates count for what they do. The bytes are
// those of the model that is pretended.
package replay
