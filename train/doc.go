// Package train runs the training of a model: steps, evaluations, checkpoints.
//
// # The loop
//
// [Run] compiles a model's two targets into one session: "train" computes the
// loss and applies every update, "eval" computes the held-out loss with the
// same variables and changes none. Then it repeats: a batch, a step, and where
// they are due an evaluation and a checkpoint. All of it happens on the
// caller's goroutine; a caller that wants to show progress passes Observe, such as
// [Show](os.Stdout).
//
// # Runs can be repeated and continued
//
// What is fed to a step (batch, seed of the dropout, learning rate, step
// counter) is a function of the options and the step's number alone. All other
// state is in the variables, those of the optimizer included, and a checkpoint
// holds every one of them. So a run that stops at step k and is resumed has
// bit-identical losses and ends with bit-identical weights; the plan, the
// budget and the number of threads may differ between the two.
//
// # Checkpoints
//
// A checkpoint is one safetensors file, DIR/step-00000123.safetensors. Its
// metadata say which model, configuration, seed and tokenizer it belongs to and
// on what machine it was made, and [Inspect] reads them. A checkpoint is written
// to a temporary file in the same directory, flushed to the disk and renamed, and
// the file "latest" is then replaced in the same way, so under every name there is
// a complete file at all times, also when the process is killed. Older checkpoints
// are removed only after that, so a directory needs room for one more than are
// kept. Variables are written and read one at a time: no second copy of the model
// is in memory. Whether a directory can be saved to is tried before anything is
// planned ([CheckSave]).
//
// A checkpoint of other variables, another configuration, seed or tokenizer is
// refused before anything is computed. Every tensor and the description have
// checksums, so a damaged file is refused too, and so is one without checksums. A
// checkpoint of another kind of device or instruction set is resumed with a
// warning, because its bits would have been others here. A variable that has
// become NaN or infinite is never saved, because it would take the place of a good
// one; the run ends with an *[ErrNonFinite] that names it and the last good
// checkpoint. A directory with the checkpoints of another run is refused: nothing
// in it is overwritten. Nor do two runs save to one directory at the same time, where the
// system has locks of directories: the second is refused before it computes anything.
//
// The processes of a mesh have one checkpoint: that of a run which is not divided, of whole
// variables. Process 0 writes it, and is given the blocks that it lacks; each reads those that
// it has, of a checkpoint of any mesh, or of none.
//
// # Parts
//
// What the loop is made of can be used alone, in a loop of one's own: [Progress] and
// [Bar] show it, [Mean], [Recent] and [Confusion] add up what it measures, [Patience] and
// [Best] end it early. Batches of one's own data are made by package data's FromTensors
// and FromFunc.
//
// A run with patience, or with KeepBest, keeps the checkpoint of its best evaluation beside the
// newest ones, which the file "best" names. What it knows of evaluations is in every checkpoint,
// so that a run that is resumed ends where one that never stopped does.
//
// Options.Metrics has the numbers of a run written as a table and for TensorBoard. A run that is
// resumed goes on with both: rows after the checkpoint's step are dropped, and an evaluation
// that was due when the run was interrupted is made up for.
//
// # What this package does not do
//
// It does not choose a learning rate (that is the model's schedule), average weights, or
// guard a directory against two runs that save to it at the same time.
package train
