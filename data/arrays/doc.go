// Package arrays reads and writes named arrays, and makes batches of them: data for networks whose
// inputs have names, such as those of ONNX's files.
//
//	set, err := arrays.Open("npz:digits.npz")
//	loader, err := arrays.NewLoader(set, arrays.LoaderOptions{Columns: []arrays.Column{
//		{Name: "image", Type: tensor.Of(tensor.F32, 8, 28, 28)},
//		{Name: "label", Type: tensor.Of(tensor.I32, 8)}}})
//
// # Forms
//
// "npz:FILE" is NumPy's archive, a zip file that has an .npy file for each array, stored or
// compressed; "npz:DIR" a directory of .npy files; "tensors:FILE" a file in the safetensors format.
// Axis 0 of every array counts examples.
//
// # What is accepted
//
// A file is untrusted. A header says type and shape, and they are compared with the bytes that are
// there before anything is allocated: a member of an archive cannot claim more than its compressed
// bytes could hold. Arrays are little endian and in C order, of floating-point numbers of 16 to
// 64 bits, integers of 8 to 64, or bool. All others are refused by name, with what would work, and
// so is what an .npy file of objects would execute.
//
// An array of another element type than an input is taken where every number stays what it is:
// integers that fit, and float16 for float32. Nothing is rounded or scaled in silence.
//
// # Batches
//
// They are those of [data.Examples]: a pure function of seed and step, every epoch in an order of
// its own, with a share held out. Examples that fill no batch are left out, in each epoch others.
package arrays
