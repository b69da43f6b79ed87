// Package llamacpp says what the files of llama.cpp have of a decoder in the words of transformers,
// of which the rest of gomem knows: a config.json, the names and the order of tensors, and a
// tokenizer.json. It takes the architectures llama (which Mistral's and Mixtral's files are of,
// too), qwen2, qwen3, qwen3moe and gpt2. What would make another network, and is not known here, is
// refused by its name.
//
// In files of llama.cpp rotary positions turn neighbours in architecture llama, and elements that
// are half a head apart in those of Qwen, as in transformers everywhere. So the rows of queries and
// keys of llama are in another order: [Tensor.Row]. Of GPT-2 matrices have a row for each output,
// where its checkpoints have a column: [Tensor.Turned].
package llamacpp
