"""Segments of invented customers, as the pages of the documentation use them."""

from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from voicecf import VoICE
from voicecf.datasets import customers

df = customers().set_index("customer_id")
encode = make_column_transformer(
    (StandardScaler(), ["age", "visits_per_month", "basket", "monthly_income"]),
    (OneHotEncoder(), ["job", "channel"]),
)
model = make_pipeline(encode, KMeans(3, n_init=10, random_state=0))
voice = VoICE(model, names=["young", "families", "retired"]).fit(df)
