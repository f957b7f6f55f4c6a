# The types of the public names: they are imported lazily, which hides them from type checkers.
# A test compares this list with the one in __init__.py.

from rankeval.io.texts import read_texts as read_texts
from rankeval.text.profiling import Profile as Profile
from rankeval.text.rankers import BM25 as BM25
from rankeval.text.rankers import VectorSpace as VectorSpace
from rankeval.text.summaries import Snippet as Snippet
from rankeval.text.summaries import key_sentences as key_sentences
from rankeval.text.summaries import lead as lead
from rankeval.text.summaries import snippets as snippets
