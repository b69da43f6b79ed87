// Package thesis reproduces the tables and figures of chapter 6 of J. Wei's
// thesis (2019), which introduced TensorFlowMem, beside what gomem does with the
// same five models.
//
// # What is compared
//
// Capacity is compared under equal caps: 12 GiB of device and 64 GiB of host
// memory at full size, where plans are made and nothing is run, and a 64th of
// both at s64, where models are an eighth as wide, batches are smaller, graphs
// are the same, and everything is run. A maximum is searched for by planning
// alone; at s64 it is then executed for a step, and one more is shown refused.
//
// Time is compared with gomem's own baseline, never with another machine's. What
// copies cost depends on κ = F·e/(2·b), the operations (F a second) that fit into
// the time of copying an element of e = 4 bytes (b bytes a second) there and back.
// The thesis' Titan X has κ of about 730. The replicas do an eighth of the
// operations a byte, so that copies slowed down to κ = 91 take the share of the
// time that they took there. Every time says its κ.
//
// The baseline, vanilla, is gomem without partitions, swapping and placement: in
// TensorFlow's order, with values freed after their last use. It is leaner than
// TensorFlow 1.12. So that gains are not those of fused operations, both sides
// run the fine lowering of models (see models.TransformerConfig.Fine) without
// fusion.
//
// The machines of the distributed tables are sessions of one process, each within
// budgets of its own, which exchange over the networks that Options.Join brings.
// Their speed is not compared, since they share a processor.
//
// What this package does not do: figures whose bars are lost in the copies of the
// thesis that there are; where only averages survive, these are shown.
package thesis
