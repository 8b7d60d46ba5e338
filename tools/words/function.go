package words

import "strings"

// functionWords are English words that hold a sentence together and say nothing
// of what it is about.
const functionWords = `
	a about above across after again against ago all almost along already also although always am among an and another any anybody
	anyhow anyone anything anyway anywhere are around as aside at be became because become becomes been before beforehand being below
	beneath beside besides between beyond both but by can cannot could despite did do does doing done down during each either else
	elsewhere enough etc even ever every everybody everyone everything everywhere except few for from further furthermore get gets
	getting got had hardly has have having he hence her here hers herself him himself his how however i if in indeed instead into is
	it its itself just least many may maybe me meanwhile might more moreover most mostly much must my myself neither never
	nevertheless no nobody none nonetheless nor not nothing now nowhere of off often oh on once one ones only onto or other others
	otherwise ought our ours ourselves out over per perhaps rather really same seem seemed seems several shall she should since so
	some somebody somehow someone something sometime sometimes somewhat somewhere still such than that the their theirs them
	themselves then thence there thereby therefore therein these they this those though through throughout thus to together too took
	toward towards under unless unlike until unto up upon us usually very via was we went were what whatever when whence whenever
	where whereas whereby wherein wherever whether which while who whoever whom whose why will with within without would yes yet you
	your yours yourself yourselves
	ain't aren't can't couldn't didn't doesn't don't hadn't hasn't haven't isn't mustn't needn't shan't shouldn't wasn't weren't won't
	wouldn't i'm i've i'd i'll you're you've you'd you'll he's he'd he'll she's she'd she'll it's it'd it'll we're we've we'd we'll
	they're they've they'd they'll that's that'd that'll there's here's what's who's where's when's how's let's
	im ive dont doesnt didnt cant couldnt wont wouldnt isnt arent wasnt werent thats`

// FunctionWords returns what reports whether a word, in lower case, is an
// English function word. Such words are no word's neighbors.
func FunctionWords() func(word string) bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(functionWords) {
		set[word] = true
	}
	return func(word string) bool { return set[strings.ReplaceAll(word, "’", "'")] }
}
